"""A second process where it helps, and the same answers without one.

Both uses fork, so that what is already in memory need not be sent; where the platform has no
``fork``, or threads are running, or only one processor may be used, there is no second process.
A child that fails is no error: its work is then done here.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TypeVar

_Item = TypeVar("_Item")


def processors() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def can_fork(wanted: int | None) -> bool:
    """Whether a second process may be used; ``wanted`` is the user's number of processes."""
    if sys.platform == "win32" or sys.platform == "darwin" or threading.active_count() > 1:
        return False
    return (processors() if wanted is None else wanted) > 1


class Worker:
    """A forked child that applies one function to each batch that it is sent."""

    def __init__(self, function: Callable[[Sequence[_Item]], list[bytes]]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._pipe, function), daemon=True
        )
        self._process.start()
        theirs.close()
        self._usable = True

    def send(self, batch: Sequence[object]) -> bool:
        """Hand over a batch; False when the child is gone."""
        if self._usable:
            try:
                self._pipe.send(batch)
            except OSError:
                self._usable = False
        return self._usable

    def receive(self) -> list[bytes] | None:
        """The results of the batch sent before, or None when the child is gone."""
        try:
            results: list[bytes] = self._pipe.recv()
        except (EOFError, OSError):
            self._usable = False
            return None
        return results

    def close(self) -> None:
        """End the child, whatever it is doing: it has nothing of its own to keep."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(
    pipe: Connection, parents: Connection, function: Callable[[Sequence[_Item]], list[bytes]]
) -> None:
    """Answer batches until the parent is gone: without its end here, that shows as an EOF."""
    parents.close()
    while True:
        try:
            batch = pipe.recv()
        except EOFError:
            return
        pipe.send(function(batch))


class Beside:
    """A computation in a forked child, while this process does something else."""

    def __init__(self, function: Callable[[], bytes]) -> None:
        context = multiprocessing.get_context("fork")
        self._function = function
        self._pipe, theirs = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_send_result, args=(theirs, self._pipe, function), daemon=True
        )
        self._process.start()
        theirs.close()

    def result(self) -> bytes:
        """What the child computed; where it failed, the same computed here."""
        try:
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            return self._function()
        finally:
            self._pipe.close()
            self._process.join()


def _send_result(pipe: Connection, parents: Connection, function: Callable[[], bytes]) -> None:
    parents.close()
    pipe.send_bytes(function())
