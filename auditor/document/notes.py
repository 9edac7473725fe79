"""Sentences above the table: what the release lacks, and what of the request is for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.answers import PlatformAnswer
from auditor.document.audited import Audited
from auditor.platforms import normal_text
from auditor.ruleset.target import target


def notes(audited: Audited, answers: Iterable[PlatformAnswer]) -> Iterator[str]:
    """What a reader should know before the rows; see :mod:`auditor.document.notes`."""
    if audited.account is not None:
        yield from audited.account.notes()
    yield from _of_release(audited)
    yield from _of_overrides(audited)
    yield from _unused_options(audited, answers)


def _of_release(audited: Audited) -> Iterator[str]:
    """That nothing in the release asks for the capability."""
    label, flag = audited.source.label, audited.capability.flag
    if flag is not None and not audited.has_setting(flag.holder, flag.name):
        yield (
            f"{label} has no {flag.name}: the setting came with a later release, "
            f"so nothing there asks for {audited.capability.name}."
        )
    if flag is None and not _is_named(audited):
        yield f"nothing in the engine of {label} names {audited.capability.probed}."


def _of_overrides(audited: Audited) -> Iterator[str]:
    setting, overrides = target().overrides, audited.request.overrides
    if overrides and not audited.has_setting(setting.holder, setting.name):
        yield (
            f"{audited.source.label} has no {setting.name}: --override shows what registering the "
            "class by a plugin would do."
        )
    known = {entry.architecture for entry in audited.tables.entries() if entry.where.path}
    for name in overrides:
        if name not in known:
            yield f"{name} is in none of the tables that are asked: --override adds it."


def _is_named(audited: Audited) -> bool:
    """Whether the engine names what is asked for, or a function that asks in its stead."""
    guard = audited.capability.guard
    if guard is None:
        return True
    names = (audited.capability.probed, *guard.functions)
    named = False
    for path in audited.paths:
        if path.startswith(guard.search) and path.endswith(".py"):
            for name in names:
                audited.files.note(path, ("mentions", name, 0, 0, 0))
            text = audited.files.text(path)
            named |= isinstance(text, bytes) and any(name.encode() in text for name in names)
    return named


def _unused_options(audited: Audited, answers: Iterable[PlatformAnswer]) -> Iterator[str]:
    """The user's options that decided nothing: most likely a name that is spelled otherwise."""
    used = {option for answer in answers for option in answer.options_used}
    request = audited.request
    given = [
        *(("--assume", normal_text(text)) for text in request.assume),
        *(("--env", name) for name in request.env),
        *(("--with", name) for name in request.with_modules),
        *(("--without", name) for name in request.without_modules),
    ]
    for option in given:
        if option not in used:
            yield f"{' '.join(option)} decided nothing: no module that was run asks for it"
