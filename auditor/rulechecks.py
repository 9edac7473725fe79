"""Checks folders with rules of a user: every file is read, and every example is run.

A rule is worth as much as its examples: one without any is refused, and so is one of which an
example does not come out as it says. The mistake is told with file, line and key.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from auditor import rulefiles
from auditor.api import Request, Resources, audit
from auditor.coverage import Row
from auditor.errors import DraftauditError, RuleError
from auditor.rulesdata import (
    Capability,
    FindingRule,
    PlatformRule,
    ShapeRule,
    capability,
    examples_rule,
    finding_rules,
    laid_over,
    load,
    platforms,
    rules_folder,
)
from auditor.rulevalues import mistakes
from auditor.sources.tree import MemoryTree, Source

_Rule = Capability | PlatformRule | ShapeRule | FindingRule

#: What each folder of rules holds.
KINDS: dict[str, type[_Rule]] = {
    "capabilities": Capability,
    "findings": FindingRule,
    "platforms": PlatformRule,
    "shapes": ShapeRule,
}


@dataclass(frozen=True, slots=True)
class _File:
    """A rule file that was read."""

    kind: str
    path: Path
    rule: _Rule

    @property
    def name(self) -> str:
        """By what a rule is known among those of its kind."""
        return self.rule.code if isinstance(self.rule, FindingRule) else self.rule.name

    def wrong(self, key: tuple[rulefiles.Key, ...], what: str, next_step: str = "") -> RuleError:
        """An error at a key of the file."""
        line = rulefiles.line_of(rulefiles.text_of(self.path, self.path.name), key)
        return RuleError(what, where=f"{self.path.as_posix()}:{line}", next_step=next_step)


def check(folders: Iterable[str | Path], named: str = "--rules") -> None:
    """Check folders that are to be laid over the rules of the project.

    Args:
        folders: the folders.
        named: by what the user named them.

    Raises:
        RuleError: something is wrong with one of them.
    """
    roots = [Path(folder) for folder in folders]
    files = [file for root in roots for file in _files(root, named)]
    known = {(file.kind, file.name): file.path for file in _shipped()}
    for file in files:
        _check_name(file, known)
        known[file.kind, file.name] = file.path
        _check_kind(file)
    with laid_over(roots):
        for file in files:
            _check_examples(file)


def _files(root: Path, named: str) -> Iterator[_File]:
    if not root.is_dir():
        raise RuleError("there is no such folder", where=f"{named} {root.as_posix()}")
    found = sorted(root.rglob("*.toml"))
    for path in found:
        kind = path.parent.name
        if path.parent.parent != root or kind not in KINDS:
            near = difflib.get_close_matches(kind, KINDS, n=1)
            hint = f"Did you mean {near[0]}/? " if near and path.parent != root else ""
            raise RuleError(
                "the folder does not say what kind of rule this is",
                where=path.as_posix(),
                next_step=f"{hint}Rules are kept in {', '.join(f'{one}/' for one in KINDS)}.",
            )
        yield _File(kind, path, load(path, KINDS[kind]))
    if not found:
        raise RuleError(
            "the folder holds no rule",
            where=f"{named} {root.as_posix()}",
            next_step=f"Rules are kept in {', '.join(f'{one}/*.toml' for one in KINDS)}.",
        )


def _shipped() -> Iterator[_File]:
    for kind, type_ in KINDS.items():
        for path in sorted((rules_folder() / kind).glob("*.toml")):
            yield _File(kind, path, load(path, type_))


def _check_name(file: _File, known: dict[tuple[str, str], Path]) -> None:
    """A name is given once; a finding is one that the audit makes, and may be reworded."""
    before = known.get((file.kind, file.name))
    if isinstance(file.rule, FindingRule):
        codes = [rule.code for rule in finding_rules()]
        if before is not None and before.is_relative_to(rules_folder()):
            return
        if before is None:
            near = difflib.get_close_matches(file.name, codes, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise file.wrong(
                ("code",),
                f"no check makes a finding with `code` {file.name!r}",
                f"{hint}A rule of yours can reword those that there are.",
            )
    if before is not None:
        raise file.wrong(
            ("code",) if isinstance(file.rule, FindingRule) else ("name",),
            f"`name` {file.name!r} is taken by {_shown(before)}",
            "Give it another name.",
        )


def _shown(path: Path) -> str:
    own = path.is_relative_to(rules_folder())
    return (path.relative_to(rules_folder().parent) if own else path).as_posix()


def _check_kind(file: _File) -> None:
    for mistake in mistakes(file.rule):
        raise file.wrong(mistake.key, mistake.what, mistake.next_step)
    match file.rule:
        case Capability(part=str(), agrees_with=str()):
            raise file.wrong(
                ("part",),
                "`part` cannot be combined with `agrees_with`: what a part of a model picks is not "
                "compared",
            )
        case Capability(valid=valid, invalid=invalid) | ShapeRule(valid=valid, invalid=invalid):
            for key, given in (("valid", valid), ("invalid", invalid)):
                if not given:
                    raise file.wrong(
                        (key,),
                        f"a rule without examples: `{key}` is empty or missing",
                        "Give a source with a class Draft.",
                    )
        case PlatformRule(examples=()):
            raise file.wrong(
                ("examples",),
                "a rule without examples: `examples` is missing",
                'Give [[examples]] with a condition and what it is: "true", "false", "undecided".',
            )
        case _:
            return


# --- examples


def _check_examples(file: _File) -> None:
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


@dataclass(frozen=True, slots=True)
class _Example:
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
    file: _File, example: _Example, asked: Request, answer: Callable[[Row], bool | None]
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


def _check_conditions(file: _File, rule: PlatformRule) -> None:
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
    file: _File,
    key: tuple[rulefiles.Key, ...],
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
