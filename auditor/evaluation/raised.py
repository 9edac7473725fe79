"""What a caught exception says of itself: its text, its class, the module that it misses.

Messages are known in full where the import system or constants alone made them; where a part of
one is not known, none of this is.
"""

from __future__ import annotations

import builtins
import re

from auditor.values import UNBOUND, Builtin, Error, Value

_MISSING = re.compile(r"No module named '([^']+)'")


def error_text(error: Error) -> str | None:
    """``str(error)``, or None where a part of the message is not known."""
    return error.message if error.exact or error.searching else None


def error_class(error: Error) -> Value:
    """``type(error)``, or UNBOUND where it is a class outside the tree."""
    if error.cls is not None:
        return error.cls
    return Builtin(error.type) if isinstance(getattr(builtins, error.type, None), type) else UNBOUND


def error_attribute(error: Error, name: str) -> Value:
    """An attribute of an exception, or UNBOUND where it is not known.

    ``name`` of a ``ModuleNotFoundError`` is the first module that is missing (``importlib``).
    """
    text = error_text(error)
    if name == "__class__":
        return error_class(error)
    if name in ("msg", "name") and error.searching and text is not None:
        missing = _MISSING.match(text)
        return text if name == "msg" else missing.group(1) if missing else UNBOUND
    return UNBOUND
