"""Run by the interpreter that has vLLM; says what it has, and what its classes are.

A script of its own, for any Python that runs vLLM: it needs nothing beside the standard library.
``probe.py REQUEST ANSWERS`` reads one JSON object from the file REQUEST, whose ``do`` is the name
of a function below, and appends one JSON object a line to the file ANSWERS, each as soon as it is
known: what the imported modules print, or whether they end the process, does not touch it.
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.machinery
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

Answer = Callable[..., None]


def locate(request: dict[str, Any], answer: Answer) -> None:
    """Where the package is, without importing it; ``folders`` is null where there is none."""
    spec = _spec(request["package"], None)
    folders = None if spec is None else list(spec.submodule_search_locations or ())
    name = f"{platform.python_implementation()} {platform.python_version()}"
    answer(python=name, folders=folders)


def modules(request: dict[str, Any], answer: Answer) -> None:
    """Which modules can be found, without importing any: true, false, or null for unknown.

    A submodule without a file counts where it was loaded by an earlier run (``loaded``): some
    modules make their own. Inside something that is no package and was not loaded, none is known.
    """
    loaded = frozenset(request["loaded"])
    for name in request["names"]:
        answer(module=name, exists=_exists(name, loaded))


def sweep(request: dict[str, Any], answer: Answer) -> None:
    """Import the class of each entry of the registry table, in its order, and ask it.

    Those in ``skip`` were answered by an earlier run. ``begin`` is written before each import, so
    that one that ends the process is known.
    """
    answer(predicates=_predicates(request["current_platform"], request["predicates"]))
    table = _named(request["table"])
    answer(entries=[str(key) for key in table])
    for key, value in table.items():
        if str(key) in request["skip"] or not _matches(str(key), request["globs"]):
            continue
        answer(begin=str(key))
        answer(architecture=str(key), **_said(value, request))
    answer(loaded=sorted(name for name in list(sys.modules) if isinstance(name, str)))


def _spec(name: str, path: list[str] | None) -> Any:
    """The spec of a module whose parent has this path; no module is imported for it."""
    if path is not None:
        # By the last part alone: a package without __init__.py would look for its parent among
        # the imported modules (PEP 420), and it is not imported here.
        return importlib.machinery.PathFinder.find_spec(name.rpartition(".")[2], path)
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = None if find is None else find(name, None, None)
        if spec is not None:
            return spec
    return None


def _exists(name: str, loaded: frozenset[str]) -> bool | None:
    parts = name.split(".")
    path = None
    for count in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:count]), path)
        if spec is None:
            return count > 1 and name in loaded
        if count == len(parts):
            return True
        if spec.submodule_search_locations is None:
            # One that makes modules of its own has made them when it is loaded.
            return name in loaded if ".".join(parts[:count]) in loaded else None
        path = list(spec.submodule_search_locations)
    return None


def _named(dotted: str) -> Any:
    """The object of a dotted name ``module.NAME``."""
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _predicates(dotted: str, names: list[str]) -> dict[str, bool]:
    """What the current platform says; a release need not have every predicate."""
    current = _named(dotted)
    methods = {name: getattr(current, name, None) for name in names}
    # A platform hands on attributes that it does not have to its device module, and gives None.
    return {name: bool(method()) for name, method in methods.items() if callable(method)}


def _matches(name: str, globs: list[str]) -> bool:
    return not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _said(value: Any, request: dict[str, Any]) -> dict[str, Any]:
    """What an entry is: a class and what it says, or the exception that loading it raises."""
    if not _is_pair(value):
        return {"unread": "the entry is not a pair of strings"}
    relative, class_name = value[:2]
    try:
        found = getattr(importlib.import_module(_absolute(relative, request)), class_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        raised = {"type": type(error).__name__, "message": _text(error)}
        return {"error": raised, "outside": _outside(error, request["package"])}
    return _of_class(found, request["attribute"])


def _outside(error: BaseException, package: str) -> str | None:
    """The module outside the package whose import by the package raised, if that is what did."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    names = [str(frame.f_globals.get("__name__")) for frame in frames]
    inside = [place for place, name in enumerate(names) if name.partition(".")[0] == package]
    behind = range(inside[-1] + 1, len(names)) if inside else range(0)
    first = next((place for place in behind if not names[place].startswith("importlib.")), None)
    if first is None or frames[first].f_code.co_name != "<module>":
        return None
    return names[first]


def _is_pair(value: Any) -> bool:
    pair = value[:2] if isinstance(value, tuple) else ()
    return len(pair) == 2 and all(isinstance(part, str) for part in pair)


def _absolute(relative: str, request: dict[str, Any]) -> str:
    """As the registry completes names: relative to its package, unless they start at the root."""
    inside = relative.partition(".")[0] == request["package"]
    return relative if inside else f"{request['relative_to']}.{relative}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failed:  # noqa: BLE001 - an exception that cannot be shown still is one
        return f"<no message: {type(failed).__name__}>"


def _of_class(found: Any, attribute: str) -> dict[str, Any]:
    has = hasattr(found, attribute)
    if not isinstance(found, type):
        kind = None if found is None else type(found).__name__
        return {"not_a_class": kind, "hasattr": has}
    return {
        "module": found.__module__,
        "class": found.__qualname__,
        "hasattr": has,
        "owner": next(_owners(found.__mro__, attribute), None),
    }


def _owners(mro: tuple[type, ...], attribute: str) -> Iterator[str]:
    return (f"{c.__module__}.{c.__qualname__}" for c in mro if attribute in vars(c))


def main() -> None:
    """Do what the request says, and end without running what modules left for the exit."""
    # Python puts the folder of a script first; nothing is to be imported from there.
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        del sys.path[0]
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    with open(sys.argv[2], "a", encoding="utf-8") as answers:

        def answer(**said: Any) -> None:
            answers.write(json.dumps(said) + "\n")
            answers.flush()

        {"locate": locate, "modules": modules, "sweep": sweep}[request["do"]](request, answer)
        answer(end=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
