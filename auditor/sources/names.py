"""Names of archive members: which of them may become a path of a tree.

A member's name is text from a stranger. The checks follow PEP 706 (the ``data`` filter of
:mod:`tarfile`), made independent of the operating system the audit runs on.
"""

from __future__ import annotations

import re

_LONGEST = 1000
_LONGEST_SHOWN = 300
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_+./-]{0,998}")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def unsafe_reason(name: str) -> str | None:
    """Why ``name`` cannot be a path below the root of a tree, or None when it can."""
    if _PLAIN.fullmatch(name) and ".." not in name:
        return None
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        return "its name is an absolute path"
    if ".." in re.split(r"[/\\]", name):
        return "its name leads out of the archive (..)"
    if not is_utf8(name):
        return "its name is not UTF-8"
    if len(name) > _LONGEST:
        return f"its name is longer than {_LONGEST} characters"
    if _CONTROL.search(name):
        return "its name holds a control character"
    if "\\" in name:
        return "its name holds a backslash"
    return None


def is_utf8(name: str) -> bool:
    """False for a name that was decoded with ``surrogateescape`` (PEP 383) from other bytes."""
    return name.isascii() or not _SURROGATE.search(name)


def normalised(name: str) -> str:
    """``name`` without empty and ``.`` components: ``./vllm//envs.py`` is ``vllm/envs.py``."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def printable(name: str) -> str:
    """``name`` as it can be shown and encoded: short, stray bytes and controls escaped."""
    if len(name) > _LONGEST_SHOWN:
        name = name[:_LONGEST_SHOWN] + "..."
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
