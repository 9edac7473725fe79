"""An installed Transformers, asked in a process of its own for the defaults of its classes."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from auditor.checkpoints import operations as ops
from auditor.checkpoints.configs import Made, OutsideClass
from auditor.checkpoints.values import (
    CannotFollow,
    External,
    Raised,
    Unknown,
    Value,
    attrs_of,
    instance,
    library_error,
)
from auditor.errors import UsageError

_SCRIPT = Path(__file__).with_name("transformers_probe.py")
_SECONDS = 120
_MARK = "$kind"


class NoLibrary:
    """No Transformers: each question ends with a gap."""

    version = ""

    def construct(self, name: str, named: Mapping[str, Value]) -> Made:
        """Refuse to say what a class of Transformers makes of its arguments."""
        raise CannotFollow(
            f"the defaults of `{name}` are known to Transformers, not installed here"
        )

    def class_of(self, model_type: Value) -> str | None:
        """Refuse to say which class a model type has."""
        said = (
            f"the class of model type {model_type!r} is known to Transformers, not installed here"
        )
        raise CannotFollow(said)

    def architecture_of(self, model_type: Value) -> Value:
        """Refuse to say which architecture a model type has."""
        said = f"the architecture of model type {model_type!r} is known to Transformers"
        raise CannotFollow(f"{said}, not installed here")

    def close(self) -> None:
        """Nothing is open."""


class InstalledLibrary:
    """A Transformers that another Python has, or this one.

    Args:
        python: the interpreter; it is started with the first question.
    """

    def __init__(self, python: Path) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None
        self._failed = ""
        self._known: dict[str, Mapping[str, Value]] = {}

    @property
    def version(self) -> str:
        """Its version; empty where it cannot be asked."""
        try:
            return str(self._ask({"ask": "version"}).get("version", ""))
        except CannotFollow:
            return ""

    def construct(self, name: str, named: Mapping[str, Value]) -> Made:
        """An instance of one of its configuration classes.

        Raises:
            CannotFollow: it cannot be asked, or has no such class.
            Raised: its constructor raised.
        """
        if not all(ops.is_data(value) for value in named.values()):
            raise CannotFollow(f"`{name}` is made of something that is no data")
        said = self._ask({"ask": "construct", "name": name, "named": dict(named)})
        error = said.get("error")
        if error is not None:
            raise Raised(library_error(error["type"], error["message"]))
        classes: dict[str, OutsideClass] = {}
        cls, attributes = _described(said["config"], classes)
        if "auto_map" in named:
            attributes["auto_map"] = named["auto_map"]
        return Made(cls, attributes, classes)

    def class_of(self, model_type: Value) -> str | None:
        """The name of the class of a model type; None where it does not know the type."""
        name = self._ask({"ask": "class", "model_type": model_type}).get("name")
        return None if name is None else str(name)

    def architecture_of(self, model_type: Value) -> Value:
        """The architecture that stands for a model type where a checkpoint names none, or None."""
        return decoded(self._ask({"ask": "names", "model_type": model_type}).get("names"))

    def _ask(self, request: Mapping[str, Value]) -> Mapping[str, Value]:
        try:
            line = json.dumps(request)
        except (TypeError, ValueError) as error:
            raise CannotFollow("what Transformers would be asked is no JSON") from error
        if line not in self._known:
            self._known[line] = self._answer(line)
        return self._known[line]

    def _answer(self, line: str) -> Mapping[str, Value]:
        if self._failed:
            raise CannotFollow(self._failed)
        try:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()
            self._wait(process)
            said = process.stdout.readline()
            answer: Mapping[str, Value] = json.loads(said)
        except (OSError, ValueError) as error:
            self._failed = f"Transformers in {self._python} cannot be asked"
            self.close()
            raise CannotFollow(self._failed) from error
        if "failed" in answer:
            raise CannotFollow(f"Transformers cannot say: {answer['failed']}")
        return answer

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._python, str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="backslashreplace",
            start_new_session=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )

    def _wait(self, process: subprocess.Popen[str]) -> None:
        with selectors.DefaultSelector() as selector:
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(_SECONDS):
                raise OSError("no answer in time")

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def library_of(python: str | None) -> InstalledLibrary | NoLibrary:
    """The Transformers of a Python; without one, of the Python that runs this, if it has any.

    Raises:
        UsageError: there is no such interpreter.
    """
    if python is not None:
        from auditor.live.interpreter import LiveError, found

        try:
            return InstalledLibrary(found(python, Path.cwd()))
        except LiveError as error:
            where, what = f"--transformers {python}", "Give a Python that has Transformers."
            raise UsageError(error.what, where=where, next_step=what) from error
    if importlib.util.find_spec("transformers") is not None:
        return InstalledLibrary(Path(sys.executable))
    return NoLibrary()


def decoded(value: Value, classes: dict[str, OutsideClass] | None = None) -> Value:
    """A value that the probe encoded; ``classes`` gets those of the configurations in it."""
    if isinstance(value, list):
        return [decoded(one, classes) for one in value]
    if not isinstance(value, dict):
        return value
    match value.get(_MARK):
        case "tuple":
            return tuple(decoded(one, classes) for one in value["items"])
        case "set" | "frozenset" as kind:
            items = [decoded(one, classes) for one in value["items"]]
            return set(items) if kind == "set" else frozenset(items)
        case "dict":
            return {decoded(key): decoded(held, classes) for key, held in value["items"]}
        case "config":
            cls, attributes = _described(value, {} if classes is None else classes)
            made = instance(External(f"transformers.{cls.name}"), config=True)
            attrs_of(made).update(attributes)
            return made
        case _:
            return Unknown(f"a {value.get('what', 'value')} of Transformers", given=True)


def _described(
    said: Mapping[str, Value], classes: dict[str, OutsideClass]
) -> tuple[OutsideClass, dict[str, Value]]:
    cls = OutsideClass(
        said["class"],
        {key: decoded(value, classes) for key, value in said["class_attributes"].items()},
        said["attribute_map"],
        frozenset(said["computed"]),
        tuple(said["order"]),
        frozenset(said["read_only"]),
        {key: tuple(names) for key, names in said["setters"].items()},
    )
    classes[cls.name] = cls
    return cls, {key: decoded(value, classes) for key, value in said["attributes"].items()}
