"""The import graph is the architecture (docs/architecture.md); this holds its direction."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable, Iterable, Iterator
from inspect import unwrap
from pathlib import Path
from types import ModuleType

import pytest

from auditor import api, factcache, memo
from auditor.syntax.blocks import blocks
from auditor.syntax.function import function_facts
from auditor.syntax.module import module_facts
from codemods import kept

ROOT = Path(__file__).parent.parent

#: From the bottom up. A line is one layer: its modules may import each other and every line
#: above them in this list, never one below. A package stands for all of its modules, unless a
#: module of it has a line of its own. Every module must be on some line.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("auditor",),  # the version alone: auditor/__init__.py
    ("auditor.errors",),
    ("auditor.coverage",),
    ("auditor.changes",),
    ("auditor.snapshot",),
    ("auditor.drift",),
    ("auditor.baseline",),
    ("auditor.sources",),
    ("auditor.ruleset.lines",),
    ("auditor.ruleset.parsing",),
    ("auditor.ruleset.files",),
    ("auditor.ruleset",),  # a module for each kind of rule file
    ("auditor.ruleset.codes", "auditor.ruleset.kinds", "auditor.ruleset.mistakes"),
    ("auditor.nodes",),
    ("auditor.facts",),
    ("auditor.values",),
    ("auditor.platforms",),
    ("auditor.syntax",),
    ("auditor.classes",),
    ("auditor.releases",),
    ("auditor.evaluation",),
    ("auditor.imports",),
    ("auditor.factcache",),
    ("auditor.moved",),
    ("auditor.processes", "auditor.stack"),
    ("auditor.program",),
    ("auditor.modules",),
    ("auditor.bases",),
    ("auditor.prefetch",),
    ("auditor.builds",),
    ("auditor.environment",),
    ("auditor.registry",),
    ("auditor.engine", "auditor.loading"),
    ("auditor.contracts",),
    ("auditor.plugins",),
    ("auditor.evidence",),
    ("auditor.headpath",),
    ("auditor.analysis",),
    ("auditor.sharing",),
    ("auditor.analyzer",),
    ("auditor.verdicts",),
    ("auditor.findings",),
    ("auditor.plugins.remarks",),
    ("auditor.instances",),
    ("auditor.introspector",),
    ("auditor.answers",),
    ("auditor.request",),
    ("auditor.words",),
    ("auditor.unspoken",),
    ("auditor.memo",),
    ("auditor.tables",),
    ("auditor.engine_reading",),
    ("auditor.asked_platforms",),
    ("auditor.document",),
    ("auditor.job",),
    ("auditor.api",),
    ("auditor.ruleset.trials",),
    ("auditor.ruleset.checks",),
    ("auditor.reports",),
    ("auditor.completion",),
    ("auditor.config",),
    ("auditor.options",),
    ("auditor.arguments",),
    ("auditor.flags",),
    ("auditor.output",),
    ("auditor.publishing",),
    ("auditor.live", "auditor.cost", "auditor.several", "auditor.checkpoints", "auditor.probes"),
    ("auditor.drift_command",),
    ("auditor.session",),
    ("auditor.reporting",),
    ("auditor.cli",),
    ("auditor.main",),
    ("auditor.action",),
    ("codemods",),
)

#: What a package may import beside itself, where the order alone would allow more.
NARROW = {
    "auditor.reports": {
        "auditor.coverage", "auditor.changes", "auditor.errors",
        "auditor.drift",  # a page compares versions as audit drift does
    }
}  # fmt: skip

#: Modules with one importer each.
ONLY_FROM = {"auditor.cli": {"auditor.main"}}

VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules(root: Path = ROOT) -> dict[str, Path]:
    files = [path for name in ("auditor", "codemods") for path in (root / name).rglob("*.py")]
    return {_module(path, root): path for path in sorted(files)}


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The module that ``from X import`` names, relative ones resolved (PEP 328)."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _imports(module: str, path: Path, known: set[str]) -> Iterator[str]:
    """Every module of the project that ``path`` imports anywhere, functions included."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, path.name == "__init__.py")
            names = [
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base
                for alias in node.names
            ]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] in ("auditor", "codemods"))


def _edges(root: Path = ROOT) -> list[tuple[str, str]]:
    modules = _modules(root)
    return [
        (module, target)
        for module, path in modules.items()
        for target in _imports(module, path, set(modules))
    ]


def _rank(module: str) -> int | None:
    """The index of the longest listed prefix of ``module``; the bare ``auditor`` is no prefix."""
    while module:
        for index, layer in enumerate(LAYERS):
            if module in layer:
                return index
        parent = module.rpartition(".")[0]
        module = "" if parent == "auditor" else parent
    return None


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _upward(edges: list[tuple[str, str]]) -> list[str]:
    return [
        f"{module} imports {target}"
        for module, target in edges
        if (_rank(module) or 0) < (_rank(target) or 0)
    ]


def _closure(start: Iterable[str]) -> set[str]:
    """Modules that run where those of ``start`` do: their imports, and the packages around them."""
    modules = _modules()
    found: set[str] = set()
    pending = list(start)
    while pending:
        module = pending.pop()
        if module in modules and module not in found:
            found.add(module)
            pending += [module.rpartition(".")[0], *_imports(module, modules[module], set(modules))]
    return found


def test_every_module_has_a_layer() -> None:
    assert [module for module in _modules() if _rank(module) is None] == []


def test_imports_run_downward_only() -> None:
    assert _upward(_edges()) == []


def test_the_auditor_does_not_know_codemods() -> None:
    wrong = [e for e in _edges() if _within(e[0], "auditor") and _within(e[1], "codemods")]
    assert wrong == []


@pytest.mark.parametrize("package", NARROW)
def test_a_narrow_package_imports_what_it_is_built_on(package: str) -> None:
    targets = {target for module, target in _edges() if _within(module, package)}
    assert {target for target in targets if not _within(target, package)} <= NARROW[package]


@pytest.mark.parametrize("module", ONLY_FROM)
def test_a_module_with_one_importer_has_no_other(module: str) -> None:
    assert {importer for importer, target in _edges() if target == module} <= ONLY_FROM[module]


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert {module for module in _modules() if module.rpartition(".")[2] in VAGUE} == set()


def test_the_auditor_names_no_command_of_the_other_package_dynamically() -> None:
    for module, path in _modules().items():
        if _within(module, "auditor"):
            tree = ast.parse(path.read_bytes())
            texts = {
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            assert not {text for text in texts if text.startswith("codemods.")}, module


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from auditor.api import audit", ["auditor.errors imports auditor.api"]),
        ("from . import api", ["auditor.errors imports auditor.api"]),
        ("def f():\n    import auditor.api", ["auditor.errors imports auditor.api"]),
        ("import codemods.cli", ["auditor.errors imports codemods.cli"]),
        ("from auditor import __version__", []),
        ("import json", []),
    ],
)
def test_the_check_itself_sees_every_spelling(
    source: str, wrong: list[str], tmp_path: Path
) -> None:
    (tmp_path / "auditor").mkdir()
    (tmp_path / "auditor" / "api.py").touch()
    (tmp_path / "auditor" / "errors.py").write_text(source)
    assert _upward(_edges(tmp_path)) == wrong


#: What keeps results apart by the code that makes them, and the functions that it starts from.
KEYED: dict[str, tuple[ModuleType, Callable[[], bytes], list[Callable[..., object]]]] = {
    "facts": (factcache, factcache.tool_salt, [module_facts, function_facts, blocks]),
    "answers": (memo, memo.tool_digest, [api.audit]),
    # The key of a plan is that of answers, and all of ``codemods``.
    "plans": (memo, memo.tool_digest, [kept.plan_of]),
}


@pytest.mark.parametrize("results", KEYED)
def test_an_edit_of_any_code_that_makes_results_gives_them_another_key(
    results: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, key, start = KEYED[results]
    modules, key_now = _modules(), unwrap(key)
    copy = tmp_path / "auditor"
    shutil.copytree(ROOT / "auditor", copy)
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    monkeypatch.setattr(keeper, "__file__", str(copy / f"{keeper.__name__.rpartition('.')[2]}.py"))
    before = key_now()
    unseen = set()
    for module in _closure(function.__module__ for function in start):
        if _within(module, "codemods"):
            continue
        path = tmp_path / modules[module].relative_to(ROOT)
        source = path.read_bytes()
        path.write_bytes(source + b"# edited")
        if key_now() == before:
            unseen.add(module)
        path.write_bytes(source)
    # The package itself holds the version alone, which is in the key of facts by its value.
    assert unseen - {"auditor"} == set()
    assert key_now() == before
