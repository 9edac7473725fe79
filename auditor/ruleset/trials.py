"""Runs the examples of a rule: each is audited in a small tree, and must come out as it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec

from auditor.api import Request, Resources, audit
from auditor.coverage import Row
from auditor.errors import DraftauditError
from auditor.ruleset.capabilities import Capability, capability
from auditor.ruleset.examples import examples_rule
from auditor.ruleset.kinds import RuleFile
from auditor.ruleset.lines import Key
from auditor.ruleset.platforms import PlatformRule, platforms
from auditor.ruleset.shapes import ShapeRule
from auditor.sources.tree import MemoryTree, Source


def check_examples(file: RuleFile) -> None:
    """Run the examples of a rule; its folder must be laid over those of the project.

    Raises:
        RuleError: an example does not come out as the rule says, or could not be audited.
    """
    match file.rule:
        case Capability(name=name):
            asked = Request(capability=name, platforms=(platforms()[0].name,))
            for example in _sources(file.rule):
                _check_source(file, example, asked, _has)
        case ShapeRule(name=name):
            asked = Request(platforms=(platforms()[0].name,))
            for example in _sources(file.rule):
                _check_source(file, example, asked, partial(_fits, name))
        case PlatformRule():
            _check_conditions(file, file.rule)
        case _:
            return


class _Example(msgspec.Struct, frozen=True):
    """A source with a class ``Draft``, where it stands, and whether the rule fits it."""

    key: str
    number: int
    text: str

    @property
    def fits(self) -> bool:
        """Whether it is one that the rule fits."""
        return self.key == "valid"


def _sources(rule: Capability | ShapeRule) -> Iterator[_Example]:
    for key, texts in (("valid", rule.valid), ("invalid", rule.invalid)):
        for number, text in enumerate(texts):
            yield _Example(key, number, text)


def _has(row: Row) -> bool | None:
    return row.hasattr


def _fits(shape: str, row: Row) -> bool | None:
    return None if row.shape is None else row.shape == shape


def _check_source(
    file: RuleFile, example: _Example, asked: Request, answer: Callable[[Row], bool | None]
) -> None:
    """One example of a capability or a shape."""
    row = _row(file, (example.key,), example.text, asked)
    said = answer(row)
    if said is example.fits:
        return
    if said is None:
        why = f"{row.verdict}, {_reason(row)}"
    else:
        why = "the rule fits it" if said else "the rule does not fit it"
    if said is False and isinstance(file.rule, ShapeRule):
        why = f"{why}, and the shape {row.shape} does"
    raise file.wrong(
        (example.key,), f"the example `{example.key}[{example.number}]` does not hold: {why}"
    )


def _check_conditions(file: RuleFile, rule: PlatformRule) -> None:
    for number, example in enumerate(rule.examples):
        text = examples_rule().condition.format(
            condition=example.condition, attribute=capability().probed
        )
        key = ("examples", number, "is")
        row = _row(file, key, text, Request(platforms=(rule.name,)), plain=True)
        said = {True: "true", False: "false", None: "undecided"}[row.hasattr]
        if said != example.is_:
            what = f"`examples[{number}]`: `{example.condition}` is {said}"
            raise file.wrong(key, f"{what}, not {example.is_}")


def _reason(row: Row) -> str:
    if row.error is not None:
        return f"{row.error.type}: {row.error.message}"
    return row.reason or "the audit does not say"


def _row(
    file: RuleFile,
    key: tuple[Key, ...],
    text: str,
    asked: Request,
    plain: bool = False,
) -> Row:
    """The row of an example in the tree for examples."""
    rule = examples_rule()
    name = file.rule.name if isinstance(file.rule, Capability) else ""
    tables = capability(name).tables
    source = _source(text if plain else f"{rule.imports}\n{text}", tables)
    try:
        document = audit(source, asked, Resources(processes=1))
    except DraftauditError as error:
        raise file.wrong(key, f"an example could not be audited: {error.message}") from error
    return document.rows[0]


def _source(text: str, tables: Iterable[str]) -> Source:
    """The tree for examples, with a model in every table that may be asked."""
    rule = examples_rule()
    files = {path: source.lstrip("\n").encode() for path, source in rule.files.items()}
    entry = f"{{{rule.entry!r}: ({rule.module!r}, {rule.class_!r})}}"
    registries: dict[str, list[str]] = {}
    for dotted in dict.fromkeys((*tables, *capability().tables)):
        module, _, name = dotted.rpartition(".")
        registries.setdefault(module, []).append(f"{name} = {entry}\n")
    sources = {module: "".join(lines) for module, lines in registries.items()}
    for module, written in {**sources, rule.module: text}.items():
        files[f"{module.replace('.', '/')}.py"] = written.encode()
    return Source("folder", None, "examples", "the examples of a rule", MemoryTree(files))
