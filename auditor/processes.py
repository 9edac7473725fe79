"""A second process where it helps, and the same answers without one.

Both uses fork, so that what is already in memory need not be sent; where the platform has no
``fork``, or threads are running, or only one processor may be used, there is no second process.
A child that fails is no error: its work is then done here.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

_Item = TypeVar("_Item")
#: Bytes of a message's length in a log.
_LENGTH = 8


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


def _forked(work: Callable[..., object], *arguments: object) -> BaseProcess:
    """Start a child that does something and ends; it leaves an interrupt to its parent."""

    def uninterrupted() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        work(*arguments)

    process = multiprocessing.get_context("fork").Process(target=uninterrupted, daemon=True)
    process.start()
    return process


class Worker:
    """A forked child that applies one function to each batch that it is sent."""

    def __init__(self, function: Callable[[Sequence[_Item]], list[bytes]]) -> None:
        self._pipe, theirs = multiprocessing.get_context("fork").Pipe()
        self._process = _forked(_serve, theirs, self._pipe, function)
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

    def is_done(self) -> bool:
        """Whether there is something to receive, if only that the child is gone."""
        try:
            return self._pipe.poll()
        except OSError:
            return True

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
        self._function = function
        self._pipe, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
        self._process = _forked(_send_result, theirs, self._pipe, function)
        theirs.close()

    def result(self) -> bytes:
        """What the child computed; where it failed, the same computed here.

        The child ends while this process goes on; :meth:`close` waits for that.
        """
        try:
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            return self._function()
        finally:
            self._process.kill()

    def close(self) -> None:
        """End the child, whatever it is doing: nobody asks for the result any more."""
        self._pipe.close()
        self._process.kill()
        self._process.join()


def _send_result(pipe: Connection, parents: Connection, function: Callable[[], bytes]) -> None:
    parents.close()
    pipe.send_bytes(function())


@contextmanager
def aside(work: Callable[[], object]) -> Iterator[None]:
    """Work in a forked child for as long as the block lasts; what it finds it tells by a log."""
    process = _forked(work)
    try:
        yield
    finally:
        process.kill()
        process.join()


class Tickets:
    """The numbers below ``count``, each drawn once by whichever of two processes is free.

    Both have them after a fork; they lie in a pipe, from which a byte can be read but once.

    Args:
        count: how many there are, 256 at most.
    """

    def __init__(self, count: int) -> None:
        self._pipe, end = os.pipe()
        os.write(end, bytes(range(count)))
        os.close(end)

    def __iter__(self) -> Iterator[int]:
        while drawn := os.read(self._pipe, 1):
            yield drawn[0]

    def close(self) -> None:
        """Give the pipe back; the other process still has its own end."""
        os.close(self._pipe)


class Log:
    """Messages from one process to another, in memory that both have after a fork.

    One of them only writes, the other only reads, and neither waits: writing takes as long as
    copying does, and reading gives what is whole by then.

    Raises:
        OSError: the system gives no such memory.
    """

    def __init__(self) -> None:
        self._file = os.memfd_create("log")
        self._at = 0
        self._cut = False

    def write(self, message: bytes) -> None:
        """Add a message; where the memory is used up, it and all later ones are not heard."""
        if self._cut:
            return
        data = len(message).to_bytes(_LENGTH, "big") + message
        try:
            # A message cut short never becomes whole, so nothing may follow it.
            self._cut = os.pwrite(self._file, data, self._at) < len(data)
        except OSError:
            self._cut = True
        self._at += len(data)

    def read(self) -> list[bytes]:
        """The messages that have become whole since the last call."""
        messages: list[bytes] = []
        size = os.fstat(self._file).st_size
        while self._at + _LENGTH <= size:
            length = int.from_bytes(os.pread(self._file, _LENGTH, self._at), "big")
            end = self._at + _LENGTH + length
            if end > size:
                break
            messages.append(os.pread(self._file, length, self._at + _LENGTH))
            self._at = end
        return messages

    def close(self) -> None:
        """Give the memory back."""
        os.close(self._file)


def two_logs() -> tuple[Log, Log] | None:
    """A log for each direction; None where the system has no memory to share by a fork."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        one = Log()
    except OSError:
        return None
    try:
        return one, Log()
    except OSError:
        one.close()
        return None
