"""The Coverage document itself, for machines."""

from __future__ import annotations

import re

from auditor.coverage import Coverage, to_json

#: What JSON lets through raw and a terminal or an editor still acts on: DEL, the C1 controls
#: (0x9b is an escape sequence by itself), bidirectional and zero-width marks, separators.
_ACTIVE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def escaped(document: bytes) -> str:
    """JSON text with those characters written as escapes.

    That changes the spelling only: they can stand nowhere but in strings.
    """
    return _ACTIVE.sub(_escape, document.decode())


def render(coverage: Coverage) -> str:
    """The document as indented JSON with a final newline, which reads back as it was."""
    return escaped(to_json(coverage))
