"""The Coverage document itself, for machines."""

from __future__ import annotations

import re

from auditor.coverage import Coverage, to_json

#: What JSON lets through raw and a terminal or an editor still acts on: DEL, the C1 controls
#: (0x9b is an escape sequence by itself), bidirectional and zero-width marks, separators.
_ACTIVE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def render(coverage: Coverage) -> str:
    """The document as indented JSON with a final newline.

    The escapes change the spelling only: these characters can stand nowhere but in strings, so
    :func:`auditor.coverage.from_json` reads the same document back.
    """
    return _ACTIVE.sub(_escape, to_json(coverage).decode())
