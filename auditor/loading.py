"""Attributes that the engine sets on a draft model after it is built (``model.lm_head = …``).

Read off the audited tree, line by line below the folder where the engine stands. Only the name of
the attribute is told: which object it is set on is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from auditor.values import Place

if TYPE_CHECKING:
    from auditor.engine import Sources

#: ``owner.attr = …`` and ``owner.attr: type = …``, where the owner is not ``self`` alone.
_STORE = re.compile(
    rb"\n[ \t]*+(?!self\.\w++[ \t]*+[:=])(?>(?:[A-Za-z_]\w*+\.)+)(\w++)[ \t]*+(?::[^=\n]+)?=(?!=)"
)


def outside_stores(files: Sources, paths: Iterable[str], folder: str) -> Mapping[str, Place]:
    """Attribute names that files below ``folder`` assign on some other object, and where first."""
    found: dict[str, Place] = {}
    for path in sorted(paths):
        if path.startswith(folder) and path.endswith(".py"):
            files.note(path, ("stores", "", 0, 0, 0))
            for name, line in stores_in(files.text(path)):
                found.setdefault(name, Place(path, line))
    return found


@lru_cache(maxsize=1024)  # asked for the answer, and once more to keep it
def stores_in(source: object) -> tuple[tuple[str, int], ...]:
    """The attributes that one file assigns on some other object, with lines; none if unread."""
    if not isinstance(source, bytes):
        return ()
    found: dict[str, int] = {}
    line, at = 1, 0
    for match in _STORE.finditer(source):
        line += source.count(b"\n", at, match.start(1))
        at = match.start(1)
        found.setdefault(match.group(1).decode(), line)
    return tuple(found.items())
