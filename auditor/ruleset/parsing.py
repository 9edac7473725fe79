"""Reads one rule file: TOML, checked against a typed structure; a mistake is told by its line."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from auditor.errors import RuleError
from auditor.ruleset.lines import Key, broken, dotted, line_of

_Rule = TypeVar("_Rule")
_UNKNOWN = re.compile(r"unknown field `(?P<key>[^`]+)`")
_MISSING = re.compile(r"missing required field `(?P<key>[^`]+)`")
_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_LINE = re.compile(r"\(at line (?P<line>\d+)")
_KEY = re.compile(r"\s*(?P<key>[\w.\"'-]+)")


def read(text: str, type_: type[_Rule], name: str) -> _Rule:
    """The rule in ``text``.

    Args:
        text: the contents of the file.
        type_: what it must be.
        name: what a message calls the file.

    Raises:
        RuleError: the text is not TOML, or not what ``type_`` says; the message has the line and
            the key.
    """
    try:
        return msgspec.convert(tomllib.loads(text), type_)
    except (ValueError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError):
            raise _of_type(text, type_, name, str(error)) from error
        raise _of_syntax(text, name, str(error)) from error


def text_of(path: Path, name: str) -> str:
    """The text of a rule file; a byte order mark before it is dropped.

    Raises:
        RuleError: the file cannot be read, or is not UTF-8; the message has the line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RuleError(f"cannot be read: {error.strerror or error}", where=name) from error
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"cannot be read: byte 0x{data[error.start]:02x} is not UTF-8"
        raise RuleError(
            what, where=f"{name}:{line}", next_step="Save the file as UTF-8."
        ) from error


def _of_syntax(text: str, name: str, message: str) -> RuleError:
    """What the TOML reader says, with the key of the statement that it could not read."""
    at = _LINE.search(message)
    lines = text.splitlines()
    start = broken(lines)
    line = int(at["line"]) if at else len(lines) if start is None else start + 1
    key = _KEY.match(lines[start if start is not None else line - 1]) if lines else None
    named = f"`{key['key']}`: " if key else ""
    return RuleError(f"{named}not valid TOML: {message}", where=f"{name}:{line}")


def _of_type(text: str, type_: type[object], name: str, message: str) -> RuleError:
    at = _AT.search(message)
    path = _keys(at["path"]) if at else ()
    if at and at["path"].endswith("[...]"):
        path = (*path, *_free_key(text, type_, path, message))
    said = message[: at.start()] if at else message
    unknown, missing = _UNKNOWN.search(said), _MISSING.search(said)
    if unknown is not None:
        key = (*path, unknown["key"])
        near = difflib.get_close_matches(unknown["key"], fields(type_, path), n=1, cutoff=0.5)
        hint = f"Did you mean `{near[0]}`?" if near else _known(fields(type_, path))
        what = f"unknown field `{dotted(key)}`"
        return RuleError(what, where=f"{name}:{line_of(text, key)}", next_step=hint)
    if missing is not None:
        what = f"missing required field `{dotted((*path, missing['key']))}`"
        return RuleError(what, where=f"{name}:{line_of(text, path)}", next_step="Add it.")
    what = f"`{dotted(path)}`: {said}" if path else said
    return RuleError(what, where=f"{name}:{line_of(text, path)}", next_step="Mend the file.")


def _known(names: tuple[str, ...]) -> str:
    return f"Known: {', '.join(names)}." if names else "Take it out."


def _keys(path: str) -> tuple[Key, ...]:
    """``guard.sites[0].path`` as keys; a key of a free table is not told, and left out."""
    found: list[Key] = []
    for part in re.findall(r"[^.\[\]]+|\[\d*\.*\]", path):
        if part.startswith("["):
            number = part.strip("[].")
            if number:
                found.append(int(number))
        else:
            found.append(part)
    return tuple(found)


def _free_key(
    text: str, type_: type[object], path: tuple[Key, ...], message: str
) -> tuple[Key, ...]:
    """The key of a free table that is wrong: the one that is refused in the same words alone."""
    table: Any = tomllib.loads(text)
    for part in path:
        table = table[part]
    if not isinstance(table, dict):
        return ()
    for key in table:
        document = tomllib.loads(text)
        at: Any = document
        for part in path:
            at = at[part]
        for other in [one for one in at if one != key]:
            del at[other]
        try:
            msgspec.convert(document, type_)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return (key,)
    return ()


def fields(type_: type[object], path: tuple[Key, ...]) -> tuple[str, ...]:
    """The keys that a table of a rule may have; none where any key may stand."""
    at: Any = type_
    for part in path:
        at = _struct_in(at)
        if at is None:
            return ()
        if isinstance(part, str):
            known = {one.encode_name: one.type for one in msgspec.structs.fields(at)}
            at = known.get(part)
    at = _struct_in(at)
    return tuple(one.encode_name for one in msgspec.structs.fields(at)) if at is not None else ()


def _struct_in(type_: Any) -> Any:
    """The structure that a type is, or holds items of."""
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return type_
    return next((found for one in get_args(type_) if (found := _struct_in(one)) is not None), None)
