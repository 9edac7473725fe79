"""Two answers for one entry: where they agree, where they differ, and where one does not know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from auditor.coverage import Row
from auditor.live.document import Difference, LiveRow, Raised, Said

#: Stands for what the files do not spell in a message (auditor/evaluation/exceptions.py).
_UNSPELLED = "…"
_ALTERNATIVE = f" {_UNSPELLED} or "
#: Python says why a module below one without submodules is not found.
_NO_PACKAGE = re.compile(r"^(No module named '[^']*'); '[^']*' is not a package$")
#: Python ends ``cannot import name`` with the file of the module, which differs by machine.
_FILE = re.compile(r"^(cannot import name .*) \([^()]*(?:\([^()]*\)[^()]*)*\)$", re.DOTALL)
_CIRCULAR = "(most likely due to a circular import)"

What = Literal["entry", "loads", "class", "hasattr", "owner", "error type", "error message"]


def said_by(row: Row) -> Said:
    """What a row of the Coverage document says, in the words of both sides."""
    if row.error is not None:
        return Said(False, error=Raised(row.error.type, row.error.message))
    if row.module is None and row.hasattr is None:
        return Said(None, reason=row.reason)
    cls = None if row.module is None else f"{row.module}.{row.class_}"
    reason = row.reason if row.hasattr is None else None
    return Said(True, cls, row.hasattr, row.owner, reason=reason)


def compared(static: Mapping[str, Said], live: Mapping[str, Said]) -> tuple[LiveRow, ...]:
    """Every entry that either side has, sorted by architecture."""
    rows = []
    for name in sorted({*static, *live}):
        mine, theirs = static.get(name), live.get(name)
        rows.append(LiveRow(name, _outcome(mine, theirs), mine, theirs))
    return tuple(rows)


def _outcome(static: Said | None, live: Said | None) -> Literal["agree", "differ", "open"]:
    if any(_differing(static, live)):
        return "differ"
    return "open" if static is None or live is None or _is_open(static, live) else "agree"


def differences(row: LiveRow) -> Iterator[Difference]:
    """What differs in a row, each thing with both answers."""
    for what, static, live in _differing(row.static, row.live):
        yield Difference(row.architecture, what, static, live)


def _is_open(static: Said, live: Said) -> bool:
    if static.loads is None or live.loads is None:
        return True
    return static.hasattr is None and static.loads


def _differing(static: Said | None, live: Said | None) -> Iterator[tuple[What, str, str]]:
    if static is None or live is None:
        known = static or live
        if known is not None and known.reason is None:
            yield "entry", _has(static), _has(live)
        return
    if static.loads is None or live.loads is None:
        return
    if static.loads != live.loads:
        yield "loads", _outline(static), _outline(live)
    elif static.loads:
        yield from _of_classes(static, live)
    else:
        yield from _of_errors(static.error, live.error)


def _has(side: Said | None) -> str:
    return "no such entry" if side is None else "has it"


def _outline(side: Said) -> str:
    if side.error is None:
        return f"loads {side.class_}" if side.loads else str(side.reason)
    return f"{side.error.type}: {side.error.message}"


def _of_classes(static: Said, live: Said) -> Iterator[tuple[What, str, str]]:
    if static.class_ != live.class_:
        yield "class", str(static.class_), str(live.class_)
    if static.hasattr is None:
        return
    if static.hasattr != live.hasattr:
        yield "hasattr", str(static.hasattr).lower(), str(live.hasattr).lower()
    if static.owner != live.owner:
        yield "owner", str(static.owner), str(live.owner)


def _of_errors(static: Raised | None, live: Raised | None) -> Iterator[tuple[What, str, str]]:
    """Two exceptions; a process that ended instead of raising one is another answer."""
    if static is None or live is None:
        yield "loads", _raised(static), _raised(live)
        return
    if static.type != live.type:
        yield "error type", static.type, live.type
    if not agrees(static.message, live.message):
        yield "error message", static.message, live.message


def _raised(error: Raised | None) -> str:
    return "ends the process" if error is None else f"{error.type}: {error.message}"


def agrees(static: str, live: str) -> bool:
    """Whether a message is the one that the files spell, as far as they spell it.

    The files give a message, one with ``…`` for what is computed, or, where nothing of it could
    be evaluated, the expression that makes it; of an f-string the constant parts count.
    """
    match = _NO_PACKAGE.match(live) or (None if live.endswith(_CIRCULAR) else _FILE.match(live))
    live = live if match is None else match[1]
    return any(_fits(one, live) for one in {static, *static.split(_ALTERNATIVE)})


def _fits(static: str, live: str) -> bool:
    if static == live:
        return True
    parts = static.split(_UNSPELLED) if _UNSPELLED in static else _constants(static)
    if parts is None:
        return False
    return re.fullmatch(".*".join(map(re.escape, parts)), live, re.DOTALL) is not None


def _constants(text: str) -> list[str] | None:
    """The constant parts of an expression that makes a message; None where it is a message."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        # Most messages are no expressions.
        return None
    if isinstance(node, ast.JoinedStr):
        return _of_joined(node)
    return ["", ""] if _computes_text(node) else None


def _computes_text(node: ast.expr) -> bool:
    """``"…" % x``, ``"…".format(x)``, ``message(x)``; but ``flash-attn`` is a message."""
    if isinstance(node, ast.Call):
        return True
    return isinstance(node, ast.BinOp) and any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node)
    )


def _of_joined(node: ast.JoinedStr) -> list[str]:
    parts = [""]
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts[-1] += str(value.value)
        else:
            parts.append("")
    return parts
