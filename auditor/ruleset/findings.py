"""The remarks that an audit may make: ``rules/findings/*.toml``; other rules that have a code."""

from __future__ import annotations

from functools import cache
from typing import Literal, TypeVar

import msgspec

from auditor.ruleset.files import Folder, Strict, folders_over, load, rule_files


class FindingRule(Strict, frozen=True):
    """``rules/findings/*.toml``: a remark that an audit may make.

    Attributes:
        what: the remark in a sentence.
        why: what comes of it.
        fix: what to do.
        link: public code or discussion about it, or empty.
        valid: plugins, with files of a release, of which this is not said; see
            :func:`example_files`.
        invalid: those of which it is.
    """

    code: str
    severity: Literal["error", "warning", "note"]
    what: str
    why: str
    fix: str
    link: str = ""
    valid: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()


def example_files(example: str) -> dict[str, str]:
    """The files of an example: each begins with a line ``=== path``."""
    parts = example.strip().split("=== ")[1:]
    return {head.strip(): body for head, _, body in (part.partition("\n") for part in parts)}


_Coded = TypeVar("_Coded", bound=FindingRule)


def finding_rules() -> tuple[FindingRule, ...]:
    """Every remark that an audit may make, by code; each text on one line."""
    return tuple(load_named("findings", FindingRule).values())


def load_named(folder: str, type_: type[_Coded]) -> dict[str, _Coded]:
    """The coded rules of a folder, in the order of their codes, by the names of their files."""
    return _load_named(folder, type_, folders_over())


@cache
def _load_named(folder: str, type_: type[_Coded], over: tuple[Folder, ...]) -> dict[str, _Coded]:
    """A user's rule of the same code takes the place of the project's."""
    found: dict[str, tuple[str, _Coded]] = {}
    for path in rule_files(folder, over):
        rule = _on_one_line(load(path, type_))
        found[rule.code] = path.stem, rule
    return dict(found[code] for code in sorted(found))


def _on_one_line(rule: _Coded) -> _Coded:
    what, why, fix = (" ".join(text.split()) for text in (rule.what, rule.why, rule.fix))
    return msgspec.structs.replace(rule, what=what, why=why, fix=fix)
