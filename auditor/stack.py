"""Room on CPython's stack of frames, for what recurses deeply and often.

Since 3.11 the frames of Python functions stand in chunks of 16 KiB (``push_chunk`` in CPython's
``pystate.c``). A chunk is mapped when a frame does not fit into the last one, and unmapped when
that frame returns. What recurses goes back and forth over the end of a chunk: an audit did so
45,000 times, each with two system calls and the faults of fresh pages. A frame that needs more room
than a chunk has gets one as large as it takes, and the frames above it stand in what is left of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

#: The slots of 8 bytes that the large frame asks for: just over 4 MiB, for which CPython maps 8 and
#: leaves nearly the half to others. Memory is used only as frames get there.
_SLOTS = 2**19 + 1


def roomy(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """The function, with room for some ten thousand frames above it in one chunk."""

    def within(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        return function(*args, **kwargs)

    # The compiler computes how many slots the operands of a function need; more are no harm.
    within.__code__ = within.__code__.replace(co_stacksize=_SLOTS)
    return wraps(function)(within)
