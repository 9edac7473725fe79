"""Every architecture that lacks the capability, with what would be done for it on each platform."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from auditor.analysis import Analysis
from auditor.answers import Study
from auditor.coverage import Row
from auditor.facts import Unparsed
from auditor.headpath.brief import brief
from auditor.program import Files
from auditor.ruleset.capabilities import Capability, capability
from auditor.ruleset.target import target
from auditor.syntax.parsing import parse
from auditor.values import ClassValue, ModuleValue, Place, PythonError, Value
from codemods.callers import demands, passes_step
from codemods.derive import Tree, complete, derive
from codemods.harness.recipe import NotBuildable, recipes
from codemods.harness.render import Subject
from codemods.jobs import Look
from codemods.plans import Derivation, PassArgument, Refusal

CAPABILITY = "get_top_tokens"


class Lacking(msgspec.Struct, frozen=True):
    """One architecture without the capability on one platform, and what would be done for it.

    ``trial`` is what a test of it is about, or why there can be none.
    """

    architecture: str
    platform: str
    cls: str
    place: Place
    outcome: Derivation | Refusal
    trial: Subject | str = ""


def looker(files: Files, paths: Iterable[str], asked: Callable[[Row], bool]) -> Look:
    """What derives a patch, or a refusal, for each row of a platform that lacks the capability.

    Args:
        files: the files of the tree.
        paths: their names.
        asked: whether a row is asked for.
    """
    rule = capability(CAPABILITY)
    passing = _passes_more(files, paths, rule)

    def look(study: Study) -> bytes:
        rows = [row for row in study.rows if is_candidate(row) and asked(row)]
        tree = _tree(study, rule, passing)
        return msgspec.msgpack.encode(list(_of_study(study, rows, tree, files)))

    return look


def gathered(seen: Iterable[bytes]) -> list[Lacking]:
    """What lookers have given, by platform."""
    return [one for blob in seen for one in msgspec.msgpack.decode(blob, type=list[Lacking])]


def is_candidate(row: Row) -> bool:
    """Whether a row lacks the capability, or has it in a way that may be a half of it."""
    lacks = row.hasattr is False
    return row.module is not None and (lacks or row.verdict in ("yes?", "unsafe"))


def _of_study(study: Study, rows: Iterable[Row], tree: Tree, files: Files) -> Iterator[Lacking]:
    for row in rows:
        cls = study.classes.get(row.architecture)
        if cls is None:
            continue
        # The analysis may be another platform's; what is asked from here on is asked of this one.
        analysis = replace(study.analyzer.analyse(cls, stub=row.verdict == "stub"), cls=cls)
        where = Place(cls.module.path, cls.facts.line)
        name, contracts = row.architecture, study.contracts
        passes = passes_step(contracts, name, tree.capability, study.step)
        own = replace(tree, step=study.step if passes else "")
        if row.hasattr:
            completed = complete(analysis, own)
            if completed is not None:
                yield Lacking(name, row.platform, cls.dotted, where, completed)
            continue
        outcome = derive(analysis, own)
        if isinstance(outcome, Derivation):
            logits = analysis.logits
            more = demands(contracts, name, tree.capability, study.step, logits, files)
            outcome = more if isinstance(more, Refusal) else _with_callers(outcome, more)
        patched = isinstance(outcome, Derivation)
        trial = _trial(name, analysis, tree, study.step) if patched else ""
        yield Lacking(name, row.platform, cls.dotted, where, outcome, trial)


def _trial(name: str, analysis: Analysis, tree: Tree, step: str) -> Subject | str:
    """What a test of the class is about, or why there can be none."""
    logits, agrees = analysis.logits, tree.capability.agrees_with
    if logits is None or agrees is None:
        return "the class has no method that the test could compare with"
    try:
        built = recipes(analysis, tree.bodies, step)
    except NotBuildable as error:
        return str(error)
    return Subject(name, brief(logits), tree.capability.name, agrees, (), built)


def _with_callers(outcome: Derivation, more: tuple[PassArgument, ...]) -> Derivation:
    """The derivation with what its callers must pass as well, in the same patch."""
    if not more:
        return outcome
    form = f"{outcome.form}, with its caller"
    edits = (*outcome.edits, *more)
    return msgspec.structs.replace(outcome, form=form, edits=edits)


def _tree(study: Study, rule: Capability, passing: Place | None) -> Tree:
    drafts = {cls.dotted for cls in study.classes.values()}
    targets = _target_entries(study, rule)

    def is_target(cls: ClassValue) -> bool:
        return any(
            name == cls.qualname and f"{cls.module.name}.".startswith(f"{module}.")
            for module, name in targets
        )

    return Tree(
        bodies=study.analyzer.bodies,
        capability=rule,
        mixin=_mixin(study, rule),
        is_target=is_target,
        is_draft=lambda cls: cls.dotted in drafts,
        passes_more=passing,
    )


def _mixin(study: Study, rule: Capability) -> ClassValue | None:
    if rule.mixin is None:
        return None
    module_name, _, name = rule.mixin.rpartition(".")
    if module_name not in study.run.program.modules:
        return None
    try:
        value, _ = study.run.get(study.run.load(module_name), name, [])
    except PythonError:
        return None
    return value if isinstance(value, ClassValue) else None


def _target_entries(study: Study, rule: Capability) -> frozenset[tuple[str, str]]:
    """Module and class of every registry entry that is not one of the draft models' table."""
    module_name, _, table = rule.tables[0].rpartition(".")
    module = study.run.modules.get(module_name)
    if not isinstance(module, ModuleValue):
        return frozenset()
    tables = {name: _table(study, module, name) for name in module.names}
    drafts = tables.get(table, {})
    package = target().registry.package
    return frozenset(
        (f"{package}.{entry[0]}" if not entry[0].startswith("vllm.") else entry[0], entry[1])
        for name, entries in tables.items()
        for key, entry in entries.items()
        if key not in drafts
    )


def _table(study: Study, module: ModuleValue, name: str) -> dict[str, tuple[str, str]]:
    """The entries of a table: keys whose value starts with two strings."""
    value: Value = module.names[name]
    if not isinstance(value, dict):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for key, entry in value.items():
        match key, entry:
            case str(), (str() as relative, str() as class_name, *_):
                found[key] = (relative, class_name)
    return found


def _passes_more(files: Files, paths: Iterable[str], rule: Capability) -> Place | None:
    """A call of the engine that hands the capability more than the hidden states.

    Only calls on an object that the engine probes with ``hasattr`` count: those on the model.
    """
    if rule.guard is None:
        return None
    calls: list[tuple[str, ast.Call]] = []
    probed: set[str] = set()
    for path in sorted(paths):
        if path.startswith(rule.guard.search) and path.endswith(".py"):
            source = files.text(path)
            if isinstance(source, bytes) and rule.name.encode() in source:
                tree = parse(source)
                for node in () if isinstance(tree, Unparsed) else ast.walk(tree):
                    match node:
                        case ast.Call(func=ast.Attribute(attr=attr)) if attr == rule.name:
                            calls.append((path, node))
                        case ast.Call(
                            func=ast.Name("hasattr"), args=[subject, ast.Constant(value=name)]
                        ) if name == rule.name:
                            probed.add(ast.unparse(subject))
    for path, call in calls:
        assert isinstance(call.func, ast.Attribute)
        if ast.unparse(call.func.value) in probed and (len(call.args) > 1 or call.keywords):
            return Place(path, call.lineno)
    return None
