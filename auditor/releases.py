"""Versions of installed distributions, known up to what the tree requires of them.

A requirement line such as ``transformers >= 5.16, < 5.20`` bounds what ``transformers.__version__``
can be wherever that release of vLLM is installed; a comparison is decided where every version
within the bounds agrees (PEP 440 ordering, by ``packaging``).
"""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from auditor.values import Release, Undecided, Value


def release(name: str, specifier: str) -> Release:
    """The bounds that a specifier sets; an empty or unreadable one sets none."""
    lowest: Version | None = None
    highest: Version | None = None
    below = False
    try:
        parts = list(SpecifierSet(specifier))
    except InvalidSpecifier:
        parts = []
    for part in parts:
        version = _version(part.version)
        if version is None:
            continue
        if part.operator in (">=", ">", "==", "~=", "===") and (lowest is None or version > lowest):
            lowest = version
        if part.operator in ("<", "<=", "==", "===") and (highest is None or version < highest):
            highest, below = version, part.operator == "<"
    return Release(name, lowest, highest, below)


def exact(text: str) -> Release:
    """The one version that ``text`` names; without bounds when it names none."""
    version = _version(text)
    return Release(text, version, version, False)


def compare(op: str, left: Value, right: Value) -> bool | Undecided:
    """``left op right`` where one side is a release and the other a version."""
    if not isinstance(left, Release) or (isinstance(right, Release) and _is_exact(left)):
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
        left, op, right = right, mirrored, left
    if isinstance(right, Release):
        other = right.lowest if _is_exact(right) else None
    else:
        other = _version(right) if isinstance(right, str) else None
    if other is None:
        return Undecided(f"the version of {left.name} is not known", None, left.name)
    match op:
        case "<":
            answer = _is_below(left, other)
        case ">=":
            answer = _negated(_is_below(left, other))
        case ">":
            answer = _is_above(left, other)
        case "<=":
            answer = _negated(_is_above(left, other))
        case "==" | "!=":
            apart = _is_below(left, other) or _is_above(left, other)
            answer = (
                True if _is_exact(left) and left.lowest == other else (False if apart else None)
            )
            answer = answer if op == "==" else _negated(answer)
        case _:
            answer = None
    if answer is None:
        return Undecided(f"the tree allows versions of {left.name} on both sides", None, left.name)
    return answer


def _is_below(release: Release, other: Version) -> bool | None:
    if release.lowest is not None and release.lowest >= other:
        return False
    if release.highest is not None and (
        release.highest < other or (release.below and release.highest <= other)
    ):
        return True
    return None


def _is_above(release: Release, other: Version) -> bool | None:
    if release.highest is not None and release.highest <= other:
        return False
    if release.lowest is not None and release.lowest > other:
        return True
    return None


def _is_exact(release: Release) -> bool:
    return release.lowest is not None and release.lowest == release.highest and not release.below


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _version(text: str | Version) -> Version | None:
    if isinstance(text, Version):
        return text
    try:
        return Version(text.removesuffix(".*"))
    except InvalidVersion:
        return None
