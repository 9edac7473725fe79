"""The baseline: a snapshot as a text file that is made to be committed.

It is TOML with one statement a line, sorted, so that a change of one entry on one platform is a
change of one line. Each line is read by itself: what is wrong is told with its line, and a file
that a merge has left with conflict markers is never taken for another one. What a reader adds
(``note``, ``accepted``, comment lines) stays through every rewriting.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from auditor.changes import Drift
from auditor.coverage import SourceInfo, VerdictName
from auditor.errors import DraftauditError
from auditor.snapshot import Key, Line, Snapshot

SCHEMA_VERSION = "1.0"

_HEADING = """\
# draftaudit baseline: what every draft model had when this was written, one line a platform.
# `audit drift` compares with it; `audit drift --update` takes in what is new. In a line, add
#   note = "..."      your own words; they stay
#   accepted = "..."  why the method may be missing there: then that fails no check
"""
_ROWS = "[rows]"
_HEADER = ("schema_version", "capability", "registry", "label", "version", "digest", "platforms",
           "given")  # fmt: skip
_FIELDS = (
    "verdict", "class", "owner", "shape", "head", "logits", "tokens", "findings", "accepted",
    "note",
)  # fmt: skip
_CONFLICT = re.compile(r"(<{7}|\|{7}|={7}|>{7})(?: |$)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
#: Characters that TOML wants escaped, and such as act on a terminal or an editor.
_ESCAPED = re.compile(
    '[\x00-\x1f"\\\\\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]'
)

_MEND = "Mend the line, or take it out and run audit drift --update"


class BaselineError(DraftauditError):
    """A baseline that cannot be read, or is about something else than what is audited."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a baseline file says.

    Attributes:
        snapshot: what is compared with.
        given: options that the audit rested on, as they would be typed (``--with triton``).
        comments: comment lines above a line of an entry.
        preface: comment lines of the reader's own above the header.
    """

    snapshot: Snapshot
    given: tuple[str, ...] = ()
    comments: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)
    preface: tuple[str, ...] = ()


# --- writing


def render(baseline: Baseline) -> str:
    """The text of a baseline; the same for the same content, whoever wrote it."""
    snapshot = baseline.snapshot
    source = snapshot.source
    header: dict[str, str | Sequence[str] | None] = {
        "schema_version": SCHEMA_VERSION,
        "capability": snapshot.capability,
        "registry": snapshot.registry,
        "label": source.label,
        "version": source.version,
        "digest": source.digest,
        "platforms": snapshot.platforms,
        "given": baseline.given or None,
    }
    text = [*_HEADING.splitlines(), *baseline.preface]
    text += [f"{name} = {_value(value)}" for name, value in header.items() if value is not None]
    text += ["", _ROWS]
    for line in _sorted(snapshot):
        text += [*baseline.comments.get(line.key, ()), _row(line)]
    return "".join(f"{line}\n" for line in text)


def _sorted(snapshot: Snapshot) -> list[Line]:
    position = {name: index for index, name in enumerate(snapshot.platforms)}
    return sorted(snapshot.lines, key=lambda line: (line.architecture, position[line.platform]))


def _row(line: Line) -> str:
    fields: dict[str, str | Sequence[str] | None] = {
        "verdict": line.verdict,
        "class": line.class_,
        "owner": line.owner,
        "shape": line.shape,
        "head": line.head,
        "logits": line.logits,
        "tokens": line.tokens,
        "findings": line.findings or None,
        "accepted": line.accepted,
        "note": line.note,
    }
    said = [f"{name} = {_value(value)}" for name, value in fields.items() if value is not None]
    return f"{_key(line.architecture)}.{_key(line.platform)} = {{ {', '.join(said)} }}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _value(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return _string(value)
    return f"[{', '.join(map(_string, value))}]"


def _string(text: str) -> str:
    """A basic string of TOML 1.0; a lone surrogate, which TOML cannot hold, as its escape."""
    sure = text.encode("utf-8", "backslashreplace").decode()
    return f'"{_ESCAPED.sub(_escape, sure)}"'


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return f"\\{char}" if char in '"\\' else f"\\u{ord(char):04x}"


# --- what a reader wrote, in a new baseline


def renewed(old: Baseline, snapshot: Snapshot, given: tuple[str, ...]) -> Baseline:
    """The baseline of ``snapshot`` with what a reader wrote in the old one."""
    kept = {line.key: line for line in old.snapshot.lines}
    lines = tuple(_with_notes(line, kept.get(line.key)) for line in snapshot.lines)
    return Baseline(
        msgspec.structs.replace(snapshot, lines=lines, baseline=old.snapshot.baseline),
        given,
        old.comments,
        old.preface,
    )


def dropped(old: Baseline, new: Baseline) -> tuple[Line, ...]:
    """Lines with a reader's own words that the new baseline has no more."""
    keys = {line.key for line in new.snapshot.lines}
    return tuple(
        line
        for line in old.snapshot.lines
        if line.key not in keys and (line.note or line.accepted or line.key in old.comments)
    )


def updated(
    old: Baseline, snapshot: Snapshot, accept: Mapping[Key, str], known: Sequence[str]
) -> Baseline:
    """The old baseline with the lines of ``snapshot`` in the place of its own.

    Lines of what the snapshot does not have stay.

    Args:
        old: what is there.
        snapshot: what is now.
        accept: why gaps are accepted, for entries and platforms that get such a line.
        known: the platforms that there are, in their order.
    """
    new = renewed(old, snapshot, old.given)
    taken = {line.key for line in new.snapshot.lines}
    lines = tuple(
        msgspec.structs.replace(line, accepted=accept.get(line.key, line.accepted))
        for line in new.snapshot.lines
    )
    stay = tuple(line for line in old.snapshot.lines if line.key not in taken)
    either = (*snapshot.platforms, *old.snapshot.platforms)
    platforms = dict.fromkeys((*(name for name in known if name in either), *either))
    merged = msgspec.structs.replace(
        new.snapshot, lines=(*lines, *stay), platforms=tuple(platforms)
    )
    return Baseline(merged, old.given, old.comments, old.preface)


def pruned(old: Baseline, found: Drift, known: Sequence[str]) -> Baseline:
    """The old baseline without what a comparison found to mean nothing any more.

    Args:
        old: what is there.
        found: the comparison.
        known: the platforms that there are.
    """
    stale = {
        (change.architecture, change.platform): change
        for change in found.changes
        if "stale" in change.kinds
    }
    lines = []
    for line in old.snapshot.lines:
        change = stale.get(line.key)
        if change is None:
            lines.append(line)
        elif change.verdict_after is not None:
            lines.append(msgspec.structs.replace(line, accepted=None))
    platforms = tuple(name for name in old.snapshot.platforms if name in known)
    snapshot = msgspec.structs.replace(old.snapshot, lines=tuple(lines), platforms=platforms)
    return Baseline(snapshot, old.given, old.comments, old.preface)


def _with_notes(line: Line, old: Line | None) -> Line:
    if old is None:
        return line
    return msgspec.structs.replace(line, note=old.note, accepted=old.accepted)


# --- reading


def parse(data: bytes, name: str) -> Baseline:
    """What a baseline says.

    Args:
        data: the bytes of the file.
        name: the file as the user gave it, for messages.

    Raises:
        BaselineError: it is no baseline, of another schema version, or wrong in some line.
    """
    return _Reader(_text(data, name), name).baseline()


def _text(data: bytes, name: str) -> list[str]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BaselineError("not UTF-8", where=f"{name}:{line}", next_step=_MEND + ".") from error
    return [line.removesuffix("\r") for line in text.split("\n")]


class _Reader:
    """One reading of a baseline, line by line."""

    def __init__(self, text: list[str], name: str) -> None:
        self._text = text
        self._name = name
        self._header: dict[str, Any] = {}
        self._lines: dict[Key, Line] = {}
        self._comments: dict[Key, tuple[str, ...]] = {}
        self._preface: list[str] = []

    def baseline(self) -> Baseline:
        self._check_markers()
        self._check_version()
        rows = self._read_header()
        self._read_rows(rows)
        header = self._header
        source = SourceInfo(header["label"], header.get("version"), header["digest"])
        snapshot = Snapshot(
            header["capability"],
            header["registry"],
            source,
            tuple(header["platforms"]),
            tuple(self._lines.values()),
            self._name,
        )
        return Baseline(
            snapshot, tuple(header.get("given", ())), self._comments, tuple(self._preface)
        )

    def _error(self, what: str, number: int, next_step: str = f"{_MEND}.") -> BaselineError:
        return BaselineError(what, where=f"{self._name}:{number}", next_step=next_step)

    def _numbered(self, start: int = 0) -> Iterator[tuple[int, str]]:
        return enumerate(self._text[start:], start + 1)

    def _check_markers(self) -> None:
        for number, line in self._numbered():
            if _CONFLICT.match(line):
                raise self._error(
                    f"a merge has left a conflict here ({line[:7]})",
                    number,
                    "Keep the lines of either side, take out the markers, and run "
                    "audit drift --update.",
                )

    def _check_version(self) -> None:
        """Before anything else: another version may have other lines."""
        for number, line in self._numbered():
            if line.partition("=")[0].strip() == "schema_version":
                version = self._statement(line, number).get("schema_version")
                own = SCHEMA_VERSION.partition(".")[0]
                if not isinstance(version, str) or version.partition(".")[0] != own:
                    raise self._error(
                        f"a baseline of schema version {version}, and {own}.x is what is read here",
                        number,
                        "Use the draftaudit that wrote it, or write it anew with audit baseline "
                        "-o into another file.",
                    )
                return
        raise BaselineError(
            "no baseline of draftaudit: it names no schema_version",
            where=self._name,
            next_step="Give the file that audit baseline -o wrote.",
        )

    def _statement(self, line: str, number: int) -> dict[str, Any]:
        try:
            return tomllib.loads(line)
        except tomllib.TOMLDecodeError as error:
            what = re.sub(r" \(at line \d+, (column \d+)\)", r" at \1", str(error))
            raise self._error(f"not TOML: {what[:1].lower()}{what[1:]}", number) from error

    # the header

    def _read_header(self) -> int:
        """Read up to ``[rows]``; where the rows begin."""
        own = set(_HEADING.splitlines())
        for number, line in self._numbered():
            if line.strip() == _ROWS:
                self._check_header(number)
                return number
            if line.lstrip().startswith("#") and line not in own:
                self._preface.append(line)
            for name, value in self._statement(line, number).items():
                self._take(name, value, number)
        raise self._error(f"there is no {_ROWS} after the header", len(self._text))

    def _take(self, name: str, value: object, number: int) -> None:
        if name not in _HEADER:
            raise self._error(
                f"the header has no {name!r}", number, f"{_near(name, _HEADER)}{_MEND}."
            )
        if name in self._header:
            raise self._error(f"{name} a second time", number)
        wanted = tuple[str, ...] if name in ("platforms", "given") else str
        try:
            self._header[name] = msgspec.convert(value, wanted)
        except msgspec.ValidationError as error:
            raise self._error(f"{name}: {_plain(error)}", number) from error

    def _check_header(self, number: int) -> None:
        for name in _HEADER:
            if name not in self._header and name not in ("version", "given"):
                raise self._error(f"the header above does not say {name}", number)

    # the rows

    def _read_rows(self, start: int) -> None:
        above: list[str] = []
        for number, line in self._numbered(start):
            if not line.strip():
                continue
            if line.lstrip().startswith("#"):
                above.append(line)
                continue
            said, comment = self._commented(line, number)
            row = self._row(said, number)
            self._lines[row.key] = row
            if above or comment:
                self._comments[row.key] = (*above, *comment)
                above = []
        if above:
            # Comments at the end stand above nothing: they go with the last line.
            last = next(reversed(self._lines), None)
            if last is None:
                self._preface += above
            else:
                self._comments[last] = (*self._comments.get(last, ()), *above)

    def _commented(self, line: str, number: int) -> tuple[dict[str, Any], tuple[str, ...]]:
        """What a line says, and the comment at its end."""
        said = self._statement(line, number)
        if line.rstrip().endswith("}"):
            return said, ()
        for at in (place for place, char in enumerate(line) if char == "#"):
            try:
                if tomllib.loads(line[:at]) == said:
                    return said, (line[at:].strip(),)
            except tomllib.TOMLDecodeError:
                continue  # this sign is in a string
        return said, ()

    def _row(self, said: dict[str, Any], number: int) -> Line:
        architecture, platform, fields = self._names(said, number)
        if platform not in self._header["platforms"]:
            near = _near(platform, self._header["platforms"])
            what = f"no platform of this baseline is called {platform!r}"
            raise self._error(what, number, f"{near}{_MEND}.")
        for name in fields:
            if name not in _FIELDS:
                near = _near(name, _FIELDS)
                raise self._error(f"a line has no {name!r}", number, f"{near}{_MEND}.")
        self._check_reason(fields, number)
        line = self._converted(architecture, platform, fields, number)
        if line.key in self._lines:
            first = self._lines[line.key].line
            raise self._error(
                f"{architecture} on {platform} a second time; first in line {first}",
                number,
                "Keep one of the two.",
            )
        self._check_complete(line, set(fields), number)
        return line

    def _names(self, said: dict[str, Any], number: int) -> tuple[str, str, dict[str, Any]]:
        """``Architecture.platform = { … }``, taken apart."""
        for architecture, inner in said.items():
            if isinstance(inner, dict):
                for platform, fields in inner.items():
                    if isinstance(fields, dict):
                        return architecture, platform, fields
        raise self._error("a line reads Architecture.platform = { verdict = ... }", number)

    def _check_reason(self, fields: Mapping[str, object], number: int) -> None:
        reason = fields.get("accepted", "given elsewhere")
        if not isinstance(reason, str) or not reason.strip():
            raise self._error(
                "a gap is accepted here without a reason",
                number,
                'Say why the method may be missing: accepted = "...", or take the word out.',
            )

    def _converted(
        self, architecture: str, platform: str, fields: Mapping[str, object], number: int
    ) -> Line:
        place = {"architecture": architecture, "platform": platform}
        try:
            line = msgspec.convert({**fields, **place}, Line)
        except msgspec.ValidationError as error:
            raise self._error(_verdict_or(error, fields), number) from error
        return msgspec.structs.replace(line, path=self._name, line=number)

    def _check_complete(self, line: Line, names: set[str], number: int) -> None:
        for what, value in (("logits", line.logits), ("tokens", line.tokens)):
            if value is not None and not _FINGERPRINT.fullmatch(value):
                raise self._error(f"{what} is no fingerprint: {value}", number)
        own = names & {"note", "accepted"}
        if line.verdict is None and (names - own or not own):
            raise self._error("a line without a verdict says nothing", number)


def _verdict_or(error: msgspec.ValidationError, fields: Mapping[str, object]) -> str:
    verdict = fields.get("verdict")
    known = get_args(VerdictName)
    if verdict is not None and verdict not in known:
        return f"no verdict is called {verdict!r}; known: {', '.join(known)}"
    return _plain(error)


def _plain(error: msgspec.ValidationError) -> str:
    """``Expected `str | null`, got `int` - at `$.note``` in the words of the file."""
    text = str(error).replace("`", "").replace("$.", "").replace("array", "list")
    return f"{text[:1].lower()}{text[1:]}".replace(" | null", "")


def _near(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]}? " if close else ""
