"""Released plugins, executed in a real vLLM: the classes that it takes are those of the audit.

Give the interpreter that has vLLM in ``DRAFTAUDIT_TEST_VLLM_PYTHON``; that vLLM is audited too.
A plugin is written to a folder from what the audit reads of it: nothing is installed or built.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from trees.plugins import GROUPS

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage, Row
from auditor.sources.cache import CacheConfig
from auditor.sources.open import open_source
from auditor.sources.plugin import Plugin, open_plugin

VARIABLE = "DRAFTAUDIT_TEST_VLLM_PYTHON"
PYTHON = os.environ.get(VARIABLE)
SCRIPT = Path(__file__).parent / "live_plugins.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.skipif(PYTHON is None, reason=f"{VARIABLE} names no interpreter with vLLM"),
]

#: A plugin, its class of platform, the modules that its build makes, and how many architectures it
#: registers at least.
PLUGINS = [
    ("vllm-ascend==0.30.0rc2", "vllm_ascend.platform.NPUPlatform", 20),
    ("vllm-ascend==0.23.0.post1", "vllm_ascend.platform.NPUPlatform", 3),
    ("vllm-rbln==0.12.0", "vllm_rbln.platform.RblnPlatform", 0),
    ("vllm-spyre==1.10.0", "vllm_spyre.platform.SpyrePlatform", 0),
    ("sendnn-inference==2.6.3", "sendnn_inference.platform.SpyrePlatform", 0),
]
BUILT = {"vllm-ascend": {"vllm_ascend._build_info": {"__device_type__": "A2"}}}
#: Rows that raise because a package of vLLM's own is not installed here say nothing of the plugin.
NOT_INSTALLED = re.compile(r"No module named '(torchvision|torchaudio)")


def opened(spec: str) -> Plugin:
    folder = os.environ.get("DRAFTAUDIT_TEST_CACHE")
    cache = CacheConfig.at(Path(folder)) if folder else CacheConfig.default()
    (plugin,) = open_plugin(spec, GROUPS, "vllm", cwd=Path.cwd(), cache=cache)
    return plugin


def written(plugin: Plugin, folder: Path) -> Path:
    """The plugin as an installation has it: its packages, and what is said of its entry points."""
    for path in plugin.packages.files():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(plugin.packages.read(path))
    about = folder / f"{plugin.name.replace('-', '_')}-{plugin.version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {plugin.name}\nVersion: {plugin.version}\n")
    lines: list[str] = []
    for entry in plugin.entry_points:
        lines += [f"[{entry.group}]", f"{entry.name} = {entry.target}"]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def executed(plugin: Plugin, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [str(PYTHON), str(SCRIPT), str(written(plugin, folder))],
        input=json.dumps(BUILT.get(plugin.name, {})),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def audited(plugin: Plugin, present: list[str]) -> Coverage:
    find = "import importlib.util as u; print(u.find_spec('vllm').submodule_search_locations[0])"
    found = subprocess.run([str(PYTHON), "-c", find], capture_output=True, text=True, check=True)
    folder = Path(found.stdout.strip().splitlines()[-1]).parent
    request = Request(with_modules=tuple(present))
    return audit(open_source(str(folder), cwd=folder), request, Resources(None, 1), [plugin])


def agrees(row: Row, live: dict[str, Any]) -> bool:
    if "error" in live:
        return row.error is not None and row.error.type == live["error"]
    return (row.module, row.class_, row.hasattr, row.owner) == (
        live["module"],
        live["class"],
        live["hasattr"],
        live["owner"],
    )


@pytest.mark.parametrize(("spec", "platform", "registers"), PLUGINS)
def test_a_plugin_does_what_the_audit_says(
    spec: str, platform: str, registers: int, tmp_path: Path
) -> None:
    plugin = opened(spec)
    live = executed(plugin, tmp_path)
    assert live["platform"] == platform
    assert len(live["registered"]) >= registers
    document = audited(plugin, live["stood_in"])
    assert [info.platform_class for info in document.plugins] == [platform]
    rows = {row.architecture: row for row in document.rows}
    unlike, same, undecided = [], 0, []
    for name, answer in live["rows"].items():
        if name not in rows or NOT_INSTALLED.search(answer.get("message", "")):
            continue
        if rows[name].verdict == "?":
            undecided.append(name)
        elif agrees(rows[name], answer):
            same += 1
        else:
            unlike.append((name, answer, rows[name]))
    assert unlike == []
    assert same >= 50
    assert len(undecided) <= 3
