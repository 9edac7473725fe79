"""Plugins over a mini vLLM: what each does to it, and the twin that does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from trees import minivllm
from trees.minivllm import PLATFORMS, source
from trees.plugins import (
    HAS,
    LACKS,
    VLLM,
    WITH_METHOD,
    audited,
    events,
    general,
    on_rocm,
    opened,
    platform,
    pyproject,
    row,
    write,
)

from auditor.api import Request, Resources, audit
from auditor.cli import audit as command
from auditor.coverage import Coverage, from_json
from auditor.main import run

MINE = "mine.models.Mine"
REGISTER = 'ModelRegistry.register_model("DraftModel", "mine.models:Mine")'
IMPORT = "from vllm import ModelRegistry"
PATCH = "Draft.get_top_tokens = lambda self, hidden_states: None"
DRAFT = "from vllm.models.draft.amd import Draft"
TABLES = "from vllm.model_executor.models import registry"

#: Bodies of an entry function by which the architecture becomes the plugin's own class.
REGISTERS = {
    "a literal call": f"{IMPORT}\n{REGISTER}",
    "by keywords": (
        f'{IMPORT}\nModelRegistry.register_model(model_cls="mine.models:Mine", '
        'model_arch="DraftModel")'
    ),
    "through a function": (
        f"{IMPORT}\ndef add(name, cls):\n    ModelRegistry.register_model(name, cls)\n"
        'add("DraftModel", "mine.models:Mine")'
    ),
    "in a loop over a table": (
        f'{IMPORT}\nfor name, cls in {{"DraftModel": "Mine"}}.items():\n'
        '    ModelRegistry.register_model(name, f"mine.models:{cls}")'
    ),
    "a class object": (
        f'{IMPORT}\nfrom mine.models import Mine\nModelRegistry.register_model("DraftModel", Mine)'
    ),
    "where it is not there yet": (
        f'{IMPORT}\nif "Unheard" not in ModelRegistry.get_supported_archs():\n    {REGISTER}'
    ),
    "a store into the table": (
        f'{TABLES}\nregistry._SPECULATIVE_DECODING_MODELS["DraftModel"] = ("mine.models", "Mine")'
    ),
    "an update of the table": (
        f"{TABLES}\nregistry._SPECULATIVE_DECODING_MODELS.update("
        'DraftModel=("mine.models", "Mine"))'
    ),
    "a merge into the table": (
        f'{TABLES}\nregistry._VLLM_MODELS |= {{"DraftModel": ("mine.models", "Mine")}}'
    ),
    "a store into what is registered": (
        f"{TABLES}\nregistry.ModelRegistry.models['DraftModel'] = "
        'registry._LazyRegisteredModel("mine.models", "Mine")'
    ),
    "an earlier registration is overwritten": (
        f'{IMPORT}\nModelRegistry.register_model("DraftModel", "mine.models:Other")\n{REGISTER}'
    ),
}
#: Bodies that leave it what it is.
LEAVES = {
    "nothing at all": "pass",
    "another architecture": f'{IMPORT}\nModelRegistry.register_model("Mine", "mine.models:Mine")',
    "where a version is not that": f"{IMPORT}\nif False:\n    {REGISTER}",
    "a default for what is there": (
        f"{TABLES}\nregistry._SPECULATIVE_DECODING_MODELS.setdefault("
        '"DraftModel", ("mine.models", "Mine"))'
    ),
    "a table of other models": (
        f'{TABLES}\nregistry._TEXT_GENERATION_MODELS["DraftModel"] = ("mine.models", "Mine")'
    ),
    "where it is there already": (
        f'{IMPORT}\nif "DraftModel" not in ModelRegistry.get_supported_archs():\n    {REGISTER}'
    ),
    "after an early return": (
        f'{IMPORT}\nif "DraftModel" in ModelRegistry.get_supported_archs():\n    return\n{REGISTER}'
    ),
}
#: Bodies of which it cannot be said.
OPEN = {
    "a name from outside": (
        f'import os\n{IMPORT}\nModelRegistry.register_model(os.getenv("A"), "m:C")'
    ),
    "a class from outside": (
        f'import other\n{IMPORT}\nModelRegistry.register_model("DraftModel", other.make())'
    ),
    "a class made at run time": (
        f"{IMPORT}\nfrom mine.models import Mine\n"
        'ModelRegistry.register_model("DraftModel", type("Made", (Mine,), {}))'
    ),
    "by a condition that is open": f"import other\n{IMPORT}\nif other.wanted():\n    {REGISTER}",
    "an import hook": "import sys, other\nsys.meta_path.insert(0, other.Finder())",
}


@pytest.mark.parametrize("how", REGISTERS)
def test_an_architecture_becomes_the_class_of_the_plugin(tmp_path: Path, how: str) -> None:
    document = on_rocm(tmp_path, general(REGISTERS[how]))
    assert (row(document).module, row(document).owner) == ("mine.models", MINE)
    assert row(document, "OtherDraftModel").module == LACKS


@pytest.mark.parametrize("how", LEAVES)
def test_an_architecture_is_left_what_it_is(tmp_path: Path, how: str) -> None:
    document = on_rocm(tmp_path, general(LEAVES[how]))
    assert (row(document).module, row(document).verdict) == (LACKS, "no")


@pytest.mark.parametrize("how", OPEN)
def test_what_cannot_be_evaluated_stays_open_with_its_place(tmp_path: Path, how: str) -> None:
    document = on_rocm(tmp_path, general(OPEN[how]))
    assert row(document).verdict == "?"
    (event,) = [event for event in events(document) if event.outcome == "undecided"]
    assert event.path == "mine/__init__.py"
    assert event.line > 1
    assert any(item.kind == "plugin" and item.line == event.line for item in document.undecided)


def test_a_row_names_the_statement_that_decided_it(tmp_path: Path) -> None:
    first = row(on_rocm(tmp_path, general(REGISTERS["a literal call"]))).evidence[0]
    assert (first.kind, first.path, first.line) == ("plugin", "mine/__init__.py", 3)
    assert first.text == REGISTER
    assert "vllm-mine registers DraftModel" in first.note


def test_the_document_names_the_plugin(tmp_path: Path) -> None:
    (plugin,) = on_rocm(tmp_path, general("pass")).plugins
    assert (plugin.label, plugin.version, plugin.platform) == ("vllm-mine 1.2", "1.2", None)
    (entry,) = plugin.entry_points
    assert (entry.path, entry.line, entry.text) == (
        "vllm-mine/pyproject.toml",
        6,
        "mine = mine:register",
    )


def test_of_two_plugins_the_later_one_wins(tmp_path: Path) -> None:
    first = general(REGISTERS["a literal call"])
    second = {
        "pyproject.toml": pyproject(general="late:register", name="vllm-late"),
        "late.py": f"def register():\n    {IMPORT}\n"
        '    ModelRegistry.register_model("DraftModel", "vllm.models.draft.nvidia:Draft")\n',
    }
    assert row(on_rocm(tmp_path, first, second)).module == HAS
    assert row(on_rocm(tmp_path / "turned", second, first)).module == "mine.models"


# --- attributes of classes ------------------------------------------------------------------------

ATTRIBUTES = {
    "an assignment": f"{DRAFT}\n{PATCH}",
    "setattr": f'{DRAFT}\nsetattr(Draft, "get_top_tokens", lambda self, h: None)',
    "setattr by a name in a loop": (
        f'{DRAFT}\nfor name in ("get_top_tokens",):\n    setattr(Draft, name, lambda self, h: None)'
    ),
    "where it is missing": f'{DRAFT}\nif not hasattr(Draft, "get_top_tokens"):\n    {PATCH}',
    "unless it is there": f'{DRAFT}\nif hasattr(Draft, "get_top_tokens"):\n    return\n{PATCH}',
    "by a function of another module": "import mine.patch\nmine.patch.apply()",
}
NO_ATTRIBUTES = {
    "where something else is there": f'{DRAFT}\nif hasattr(Draft, "set_step"):\n    {PATCH}',
    "of another class": "from mine.models import Mine\nMine.get_top_tokens = None",
    "another attribute": f"{DRAFT}\nDraft.compute_logits = lambda self, h: None",
}
PATCHING = {"mine/patch.py": f"{DRAFT}\n\ndef apply():\n    {PATCH}\n"}


@pytest.mark.parametrize("how", ATTRIBUTES)
def test_a_class_gets_the_method_from_the_plugin(tmp_path: Path, how: str) -> None:
    document = on_rocm(tmp_path, general(ATTRIBUTES[how], PATCHING))
    assert (row(document).hasattr, row(document).owner) == (True, f"{LACKS}.Draft")
    assert any(step.path.startswith("mine/") for step in row(document).evidence)
    (event,) = events(document, "attribute")
    assert (event.target, event.outcome) == (f"{LACKS}.Draft.get_top_tokens", "applied")


@pytest.mark.parametrize("how", NO_ATTRIBUTES)
def test_a_class_does_not_get_the_method(tmp_path: Path, how: str) -> None:
    assert row(on_rocm(tmp_path, general(NO_ATTRIBUTES[how]))).hasattr is False


@pytest.mark.parametrize(
    "body",
    [
        f"import other\n{DRAFT}\nif other.wanted():\n    {PATCH}",
        f"import other\nif other.wanted():\n    {DRAFT}\n    {PATCH}",
    ],
)
def test_a_patch_on_an_open_branch_leaves_the_row_open(tmp_path: Path, body: str) -> None:
    document = on_rocm(tmp_path, general(body))
    assert (row(document).verdict, row(document).hasattr) == ("?", None)


# --- modules --------------------------------------------------------------------------------------

REPLACED = 'import sys\nimport mine.models\nsys.modules["vllm.models.draft.amd"] = mine.models'


def test_a_module_is_replaced(tmp_path: Path) -> None:
    models = {"mine/models.py": WITH_METHOD.replace("Mine", "Draft")}
    document = on_rocm(tmp_path, general(REPLACED, models))
    assert row(document).module == "mine.models"
    (event,) = events(document, "module")
    assert (event.target, event.value) == ("vllm.models.draft.amd", "mine.models")


# --- platforms ------------------------------------------------------------------------------------

DISPATCH = {
    "vllm/models/draft/__init__.py": """
        from vllm.platforms import current_platform

        if current_platform.is_rocm():
            from vllm.models.draft.nvidia import Draft
        elif current_platform.is_tpu():
            from vllm.models.draft.common import Draft
        elif current_platform.is_out_of_tree() and current_platform.device_type == "mine":
            from vllm.models.draft.amd import Draft
        else:
            raise RuntimeError("for none of these")
        """
}


def own(tmp_path: Path, files: Mapping[str, str], vllm: Mapping[str, str] = DISPATCH) -> Coverage:
    return audited(tmp_path, files, vllm=vllm)


@pytest.mark.parametrize(
    ("enum", "module"),
    [("OOT", LACKS), ("ROCM", HAS), ("TPU", "vllm.models.draft.common")],
)
def test_a_platform_answers_as_it_declares_itself(tmp_path: Path, enum: str, module: str) -> None:
    document = own(tmp_path, platform(enum))
    assert document.platforms == ("vllm-mine",)
    assert row(document).module == module
    (plugin,) = document.plugins
    assert (plugin.platform, plugin.platform_class) == ("vllm-mine", "mine.platform.MyPlatform")


def test_a_predicate_that_is_overridden_counts(tmp_path: Path) -> None:
    more = "def is_rocm(self):\n    return self.is_out_of_tree()"
    assert row(own(tmp_path, platform("OOT", more))).module == HAS


def test_a_predicate_that_asks_the_device_stays_open(tmp_path: Path) -> None:
    more = "def is_rocm(self):\n    import torch\n    return torch.mine.is_available()"
    assert row(own(tmp_path, platform("OOT", more))).verdict == "?"


def test_a_platform_that_is_asked_for_by_name_is_that_of_the_release(tmp_path: Path) -> None:
    request = Request(platforms=("rocm",))
    document = audited(tmp_path, platform("OOT"), vllm=DISPATCH, request=request)
    assert document.platforms == ("rocm",)
    assert row(document).module == HAS


def test_an_entry_function_that_gives_nothing_leaves_every_platform(tmp_path: Path) -> None:
    files = {**platform("OOT"), "mine/__init__.py": "def register():\n    pass\n"}
    assert own(tmp_path, files).platforms == PLATFORMS


def test_a_platform_is_prepared_after_the_general_plugins(tmp_path: Path) -> None:
    more = f"""
@classmethod
def pre_register_and_update(cls, parser=None):
    {IMPORT}
    {REGISTER}
"""
    files = {**platform("OOT", more), "mine/models.py": WITH_METHOD}
    assert row(own(tmp_path, files, {})).module == "mine.models"


# --- broken plugins -------------------------------------------------------------------------------

BROKEN = {
    "a module that is not there": {"pyproject.toml": pyproject(general="nowhere:register")},
    "a name that is not there": {"pyproject.toml": pyproject(general="mine:nothing")},
    "a call that raises": {"mine/__init__.py": "def register():\n    raise ValueError('no')\n"},
    "a module that raises": {"mine/__init__.py": "raise ValueError('no')\n"},
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_entry_point_that_fails_is_told_and_the_rest_is_answered(
    tmp_path: Path, how: str
) -> None:
    document = on_rocm(tmp_path, general("pass", BROKEN[how]))
    assert row(document).verdict == "no"
    (event,) = events(document, "entry")
    assert event.outcome == "failed"
    assert (event.path, event.line) == ("vllm-mine/pyproject.toml", 6)


def test_a_module_that_does_not_parse_leaves_its_entry_point_open(tmp_path: Path) -> None:
    document = on_rocm(tmp_path, general("pass", {"mine/__init__.py": "def register(:\n"}))
    assert [event.outcome for event in events(document, "entry")] == ["undecided"]
    assert row(document).verdict == "?"


def test_a_project_without_entry_points_says_so(tmp_path: Path) -> None:
    document = on_rocm(
        tmp_path, general(REGISTERS["a literal call"], {"pyproject.toml": pyproject()})
    )
    assert row(document).module == LACKS
    assert any("vllm-mine 1.2 has no entry point" in note for note in document.notes)


HOSTILE = """
from pathlib import Path
from setuptools import setup

Path({sentinel!r}).write_text("run")
setup(
    name="vllm-mine",
    version="1.2",
    packages=["mine"],
    entry_points={{"vllm.general_plugins": ["mine = mine:register"]}},
)
"""


def test_nothing_of_a_plugin_is_executed(tmp_path: Path) -> None:
    sentinel = tmp_path / "sentinel"
    run = f"from pathlib import Path\nPath({str(sentinel)!r}).write_text('run')\n"
    body = f"{run}import os\nos.system('touch {sentinel}')\n{IMPORT}\n{REGISTER}"
    files = general(body, {"setup.py": HOSTILE.format(sentinel=str(sentinel))})
    del files["pyproject.toml"]
    files["mine/__init__.py"] = run + files["mine/__init__.py"]
    assert row(on_rocm(tmp_path, files)).module == "mine.models"
    assert not sentinel.exists()


HOOK = """
import builtins
import importlib
import sys

OLD = builtins.__import__


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    try:
        table = {{{table}}}
        if name in table:
            if name in sys.modules:
                return sys.modules[name]
            module = importlib.import_module(table[name])
            sys.modules[name] = module
    except Exception:
        pass
    return OLD(name, globals=globals, locals=locals, fromlist=fromlist, level=level)


def register():
    builtins.__import__ = _import
"""


@pytest.mark.parametrize(
    ("table", "module"),
    [
        ('"vllm.models.draft.amd": "mine.models"', "mine.models"),
        ('"vllm.models.draft.common": "mine.models"', LACKS),
    ],
)
def test_an_import_hook_with_a_table_is_followed(tmp_path: Path, table: str, module: str) -> None:
    models = WITH_METHOD.replace("Mine", "Draft")
    files = general(
        "pass", {"mine/__init__.py": HOOK.format(table=table), "mine/models.py": models}
    )
    document = on_rocm(tmp_path, files)
    assert row(document).module == module
    (event,) = events(document, "hook")
    assert (event.target, event.outcome) == ("builtins.__import__", "applied")


def test_a_hook_that_is_not_followed_leaves_every_row_open(tmp_path: Path) -> None:
    hook = HOOK.format(table="").replace("def _import", "@other.wrapped\ndef _import")
    files = general("pass", {"mine/__init__.py": f"import other\n{hook}"})
    document = on_rocm(tmp_path, files)
    assert {row.verdict for row in document.rows} == {"?"}


def test_a_changed_configuration_is_an_event(tmp_path: Path) -> None:
    body = (
        "from vllm.config.speculative import SpeculativeConfig\n"
        "SpeculativeConfig.hf_config_override = staticmethod(lambda config: config)"
    )
    document = on_rocm(tmp_path, general(body))
    (event,) = events(document, "config")
    assert event.target == "vllm.config.speculative.SpeculativeConfig.hf_config_override"
    assert any(item.kind == "caller" and item.line == event.line for item in document.undecided)


def test_the_version_of_the_release_is_known_to_a_plugin(tmp_path: Path) -> None:
    body = (
        "from importlib.metadata import version\nfrom packaging.version import Version\n"
        f'{IMPORT}\nif Version(version("vllm")) >= Version("0.33"):\n    {REGISTER}'
    )
    assert row(on_rocm(tmp_path, general(body))).module == "mine.models"
    other = body.replace('"0.33"', '"0.34"')
    assert row(on_rocm(tmp_path / "other", general(other))).module == LACKS


WORKER = """
    from vllm.v1.worker.worker_base import WorkerBase


    class MyWorker(WorkerBase):
        def __init__(self, vllm_config, rank):
            from vllm.models.draft.amd import Draft

            Draft.get_top_tokens = lambda self, hidden_states: None
            super().__init__(vllm_config, rank)
    """
BASE = {
    "vllm/v1/worker/worker_base.py": """
        class WorkerBase:
            def __init__(self, vllm_config, rank):
                self.rank = rank
        """
}
SETTLES = """
@classmethod
def check_and_update_config(cls, vllm_config):
    vllm_config.parallel_config.worker_cls = "mine.worker.{name}"
"""


@pytest.mark.parametrize(("name", "has"), [("MyWorker", True), ("Nothing", False)])
def test_what_the_worker_of_a_platform_patches_counts(tmp_path: Path, name: str, has: bool) -> None:
    files = {**platform("OOT", SETTLES.format(name=name)), "mine/worker.py": WORKER}
    assert row(own(tmp_path, files, BASE)).hasattr is has


def test_a_worker_that_is_one_of_two_leaves_its_patches_open(tmp_path: Path) -> None:
    settles = SETTLES.format(name="MyWorker") + '    other = "mine.worker.OtherWorker"\n'
    worker = f"{WORKER}\n\n    class OtherWorker(WorkerBase):\n        pass\n"
    files = {**platform("OOT", settles), "mine/worker.py": worker}
    assert row(own(tmp_path, files, BASE)).verdict == "?"


def test_a_kept_answer_counts_as_long_as_the_plugin_is_the_same(tmp_path: Path) -> None:
    resources = Resources(cache=tmp_path / "cache", processes=1)
    request, tree = Request(platforms=("rocm",)), source(VLLM)

    def answer(body: str) -> Coverage:
        plugin = opened(tmp_path / "plugin", general(body))
        return audit(tree, request, resources, [plugin])

    first = answer(REGISTERS["a literal call"])
    assert answer(REGISTERS["a literal call"]) == first
    assert row(answer("pass")).module == LACKS
    assert row(audit(tree, request, resources)).module == LACKS
    assert row(answer(REGISTERS["a literal call"])).module == "mine.models"


def test_the_command_names_the_plugin_and_answers_for_its_platform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm = minivllm.write(tmp_path / "vllm", VLLM)
    plugin = write(tmp_path / "plugin", {**platform("OOT"), "mine/models.py": WITH_METHOD})
    arguments = ["--vllm", str(vllm), "--plugin", str(plugin), "--no-cache", "-f", "json"]
    assert run(command, [*arguments, "-p", "vllm-mine"], "audit") == 0
    shown = capsys.readouterr()
    assert "with vllm-mine 1.2 from" in shown.err
    document = from_json(shown.out.encode())
    assert document.platforms == ("vllm-mine",)
    assert run(command, [*arguments, "-p", "vllm-min"], "audit") == 2
    assert "Did you mean vllm-mine?" in capsys.readouterr().err
    assert run(command, [*arguments, "--plugin", str(plugin)], "audit") == 2
    assert "named twice" in capsys.readouterr().err


def test_an_architecture_that_a_plugin_took_out_is_not_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm = minivllm.write(tmp_path / "vllm", VLLM)
    body = (
        "from vllm.model_executor.models import registry\n"
        'registry._SPECULATIVE_DECODING_MODELS.pop("DraftModel")'
    )
    plugin = write(tmp_path / "plugin", general(body))
    arguments = ["--vllm", str(vllm), "--plugin", str(plugin), "--no-cache", "-a", "DraftModel"]
    assert run(command, arguments, "audit") == 2
    told = capsys.readouterr().err
    assert "no architecture of" in told
    assert "Did you mean DraftModel?" not in told
