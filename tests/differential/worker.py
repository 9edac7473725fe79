"""Imports mini packages with real Python, one process an example.

A program of its own, started with ``python -I -S``: it reads one JSON request a line, and answers
each with one line. For every run of a request it forks, so that each import starts from the same
``sys.modules``, in which nothing of the package stands.
"""

from __future__ import annotations

import contextlib  # noqa: F401 - for the children, once
import importlib
import importlib.util  # for the children, once
import json
import os
import signal
import sys
import tempfile
import types
import typing
from functools import partial
from importlib.machinery import SourceFileLoader

ROOT = "vllm"
Child = tuple[int, int]
PLAIN = (bool, int, float, str, bytes, type(None))


class FakePlatform:
    """``current_platform`` with the predicates and attributes of one platform."""

    def __init__(self, predicates: dict[str, bool], attributes: dict[str, str]) -> None:
        for name, answer in predicates.items():
            setattr(self, name, lambda answer=answer: answer)
        for name, value in attributes.items():
            setattr(self, name, value)


def in_tree(name: object) -> bool:
    return isinstance(name, str) and name.partition(".")[0] == ROOT


def describe(value: object, attributes: list[str]) -> list[typing.Any]:
    """What a value is: kind and identity."""
    if type(value) in PLAIN:
        return ["constant", repr(value)]
    if isinstance(value, tuple | list):
        return [type(value).__name__, [describe(item, attributes) for item in value]]
    if isinstance(value, dict):
        return ["dict", [[repr(k), describe(v, attributes)] for k, v in value.items()]]
    if isinstance(value, set | frozenset):
        return [type(value).__name__, sorted(map(repr, value))]
    if isinstance(value, types.ModuleType):
        return ["module", value.__name__]
    if isinstance(value, FakePlatform):
        return ["platform"]
    if isinstance(value, type):
        mro = [f"{member.__module__}.{member.__qualname__}" for member in value.__mro__]
        return ["class", mro[0], mro, {name: hasattr(value, name) for name in attributes}]
    if isinstance(value, types.FunctionType):
        return ["function", value.__module__, value.__name__]
    return ["object", f"{type(value).__module__}.{type(value).__qualname__}"]


def attempt(function: typing.Callable[[], object]) -> list[typing.Any]:
    """The result, or the exception's type and message."""
    try:
        return ["value", function()]
    except Exception as error:  # noqa: BLE001 - what the package raises is what is asked for
        return ["raises", type(error).__name__, str(error)]


def counted() -> dict[str, int]:
    """How often each module of the package is run from now on: once more after it failed."""
    runs: dict[str, int] = {}
    run = SourceFileLoader.exec_module

    def exec_module(self: SourceFileLoader, module: types.ModuleType) -> None:
        if in_tree(module.__name__):
            runs[module.__name__] = runs.get(module.__name__, 0) + 1
        run(self, module)

    setattr(SourceFileLoader, "exec_module", exec_module)  # noqa: B010 - mypy forbids the plain form
    return runs


def imported(name: str) -> None:
    """Import a module for its outcome alone."""
    importlib.import_module(name)


def probed(module: str, name: str, attributes: list[str]) -> object:
    """An attribute of a loaded module, described."""
    return describe(getattr(sys.modules[module], name), attributes)


def report(request: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Import the entries in order, then look at every module of the package."""
    attributes, runs = request["attributes"], counted()
    entries = [attempt(partial(imported, name)) for name in request["entries"]]
    modules = {
        name: {
            key: describe(value, attributes)
            for key, value in vars(module).items()
            if not key.startswith("_") or key == "__all__"
        }
        for name, module in sorted(sys.modules.items())
        if in_tree(name) and module is not None
    }
    probes = [
        attempt(partial(probed, module, name, attributes)) for module, name in request["probes"]
    ]
    return {"entries": entries, "modules": modules, "probes": probes, "runs": runs}


def child(folder: str, request: dict[str, typing.Any], run: dict[str, typing.Any]) -> bytes:
    signal.alarm(20)
    sys.dont_write_bytecode = True
    write(folder, run["files"])
    os.environ.update(run["environment"])
    sys.path.insert(0, folder)
    fake = types.ModuleType("fake_platform")
    fake.current = FakePlatform(run["predicates"], run["attributes"])  # type: ignore[attr-defined]
    sys.modules["fake_platform"] = fake
    return json.dumps(report(request)).encode()


def write(folder: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w") as stream:
            stream.write(text)


def start(folder: str, request: dict[str, typing.Any], run: dict[str, typing.Any]) -> Child:
    """Begin one run in a process of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    status = 1
    try:
        os.close(reader)
        with open(writer, "wb") as stream:
            stream.write(child(folder, request, run))
        status = 0
    finally:
        os._exit(status)


def finish(started: Child) -> typing.Any:
    """The report of a run."""
    pid, reader = started
    with open(reader, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(answer) if not status else {"failed": status}


def answers(request: dict[str, typing.Any]) -> list[typing.Any]:
    """The reports of all runs of a request, which go on side by side."""
    with tempfile.TemporaryDirectory(prefix="differential-") as folder:
        started = []
        for number, run in enumerate(request["runs"]):
            own = os.path.join(folder, str(number))
            write(own, request["files"])
            started.append(start(own, request, run))
        return [finish(one) for one in started]


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answers(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
