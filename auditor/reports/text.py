"""Text that comes from the audited tree, made safe to show.

Names, messages and source lines of a hostile tree may hold terminal escapes, line breaks or
bidirectional controls (CVE-2021-42574). They are shown as the escapes a Python literal would
use, so nothing disappears and nothing acts on the terminal.
"""

from __future__ import annotations

import unicodedata

#: Control, format (bidi, zero width), surrogate, line and paragraph separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _visible(char: str) -> str:
    if unicodedata.category(char) not in _INVISIBLE:
        return char
    return char.encode("unicode_escape").decode("ascii")


def literal(text: str) -> str:
    r"""``text`` on one line, every invisible character as its escape (``\x1b``, ``\u202e``)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)
