"""Runs the probe with another interpreter: which one, and how a run ends.

What the probe answers goes through a file; what the imported modules print goes into another, of
which the last line is shown where a run fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TypeVar

import msgspec

from auditor.errors import DraftauditError

PROBE = Path(__file__).with_name("probe.py")
#: How often a running probe is looked at, in seconds.
_PAUSE = 0.05
_LONGEST_LINE = 300
_OPTION = "--live"


class LiveError(DraftauditError):
    """An interpreter that cannot be asked."""


class Line(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """One line of what the probe answers; each has a few of these fields."""

    python: str | None = None
    folders: list[str] | None = None
    module: str | None = None
    exists: bool | None = None
    predicates: dict[str, bool] | None = None
    entries: list[str] | None = None
    begin: str | None = None
    architecture: str | None = None
    class_: str | None = None
    hasattr: bool | None = None
    owner: str | None = None
    not_a_class: str | None = None
    error: Mapping[str, str] | None = None
    outside: str | None = None
    unread: str | None = None
    loaded: list[str] | None = None
    end: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of the probe answered, and how it ended.

    Attributes:
        lines: the answers.
        ended: how the process ended where that was before the end, in words; else empty.
        late: whether it was ended since no answer came in time.
        said: the last line that it printed.
    """

    lines: tuple[Line, ...]
    ended: str
    late: bool
    said: str


def found(given: str | None, cwd: Path) -> Path:
    """The interpreter that the value of ``--live`` means; None is the one that runs this.

    A folder is a virtual environment; a name without a folder is looked for on the search path.

    Raises:
        LiveError: there is none.
    """
    if given is None:
        return Path(sys.executable)
    where = f"{_OPTION} {given}"
    if not given.strip() or "\0" in given:
        raise LiveError("this names no interpreter", where=_OPTION, next_step=_GIVE)
    path = cwd / os.path.expanduser(given)
    if path.is_dir():
        return _in_environment(path, where)
    if not path.is_file():
        on_path = None if os.sep in given or "/" in given else shutil.which(given)
        if on_path is None:
            raise LiveError("there is no such interpreter", where=where, next_step=_GIVE)
        return Path(on_path)
    if not os.access(path, os.X_OK):
        raise LiveError("this file cannot be run", where=where, next_step=_GIVE)
    return path


_GIVE = "Give a Python that has vLLM, or the folder of its virtual environment."


def _in_environment(folder: Path, where: str) -> Path:
    for name in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
        if (folder / name).is_file():
            return folder / name
    raise LiveError("this folder holds no interpreter", where=where, next_step=_GIVE)


def run(
    python: Path, request: Mapping[str, object], environment: Mapping[str, str], seconds: float
) -> Ran:
    """Run the probe once.

    Args:
        python: the interpreter.
        request: what it is to do.
        environment: its environment variables.
        seconds: how long it may take from one answer to the next.

    Raises:
        LiveError: the interpreter cannot be started, or what it answers cannot be read.
    """
    ran = run_script(python, PROBE, request, environment, seconds)
    lines = decoded(ran.answers, Line, python)
    whole = bool(lines) and lines[-1].end
    return Ran(lines, "" if whole else ran.ended, ran.late and not whole, ran.said)


@dataclass(frozen=True, slots=True)
class RanScript:
    """What a script wrote, and how it ended: as :class:`Ran`, before anybody reads the answers."""

    answers: bytes
    ended: str
    late: bool
    said: str


def run_script(
    python: Path,
    script: Path,
    request: Mapping[str, object],
    environment: Mapping[str, str],
    seconds: float,
    stop: Event | None = None,
) -> RanScript:
    """Run ``script REQUEST ANSWERS``: two files of JSON, the second one line an answer.

    ``stop`` ends it early; a thread that waits here is not interrupted by the user itself.

    Raises:
        LiveError: the interpreter cannot be started.
    """
    with stored(), TemporaryDirectory(prefix="draftaudit-") as name:
        folder = Path(name)
        asked, answers, log = folder / "request", folder / "answers", folder / "printed"
        asked.write_text(json.dumps(request), encoding="utf-8")
        answers.touch()
        with open(log, "wb") as printed:
            process = _start([python, script, asked, answers], environment, printed.fileno())
            try:
                late = _late(process, answers, seconds, stop)
            finally:
                _end(process)
        ended = _how(process.returncode, seconds if late else None)
        return RanScript(answers.read_bytes(), ended, late, _last_line(log))


@contextlib.contextmanager
def stored() -> Iterator[None]:
    """For a block that writes temporary files: a full or closed disk is the user's to know.

    Raises:
        LiveError: a file cannot be written or read again.
    """
    try:
        yield
    except OSError as error:
        raise LiveError(
            f"temporary files cannot be kept ({error.strerror})",
            where=str(error.filename or tempfile.gettempdir()),
            next_step="Make room there, or name another folder in the variable TMPDIR.",
        ) from error


def _start(
    command: list[Path], environment: Mapping[str, str], printed: int
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            # A process group of its own, so that what the modules start ends with it.
            start_new_session=True,
        )
    except OSError as error:
        raise LiveError(
            f"cannot be started ({error.strerror})", where=str(command[0]), next_step=_GIVE
        ) from error


def _late(
    process: subprocess.Popen[bytes], answers: Path, seconds: float, stop: Event | None
) -> bool:
    """Wait until the process ends; whether it was too long without an answer before."""
    size, since = 0, time.monotonic()
    while process.poll() is None and not (stop is not None and stop.is_set()):
        now = answers.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > seconds:
            return True
        time.sleep(_PAUSE)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process if it still runs, and what it has started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    process.wait()


_Answer = TypeVar("_Answer")


def decoded(text: bytes, type_: type[_Answer], python: Path) -> tuple[_Answer, ...]:
    """The whole lines; a last one that is not whole was being written when the process ended.

    Raises:
        LiveError: a line is not what ``type_`` says.
    """
    try:
        return tuple(
            msgspec.json.decode(line, type=type_)
            for line in text.splitlines(keepends=True)
            if line.endswith(b"\n")
        )
    except msgspec.DecodeError as error:
        raise LiveError(f"its answer cannot be read ({error})", where=str(python)) from error


def _how(code: int, seconds: float | None) -> str:
    if seconds is not None:
        return f"gave no answer for {seconds:g} s"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        # A signal without a name (a real-time one) is shown by its number.
        name = str(-code)
    return f"was ended by signal {name}"


def _last_line(log: Path) -> str:
    text = log.read_bytes().decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LONGEST_LINE] if lines else ""
