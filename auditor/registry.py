"""The registry tables: architecture to module and class.

A table is read by running the registry's module with imports deferred, so that a table that is
built by an update, a merge or a branch is read as Python would build it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from auditor.errors import RegistryError
from auditor.imports import ImportRun
from auditor.program import Files
from auditor.ruleset.engine import engine_rule
from auditor.values import (
    ClassValue,
    Doubts,
    Either,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Undecided,
    Value,
)

#: A module and a class.
_PAIR = 2
_KEY = re.compile(rb"""\s*['"](.*?)['"]\s*:""")


class Entry(msgspec.Struct, frozen=True):
    """One row of a registry table: the architecture, and the class that it names.

    ``by`` says which plugin put it there, where the table itself does not have it, and ``option``
    which option of the user did; ``value`` is the class, where it was put there itself; ``open`` is
    why it is not known what is there.
    """

    architecture: str
    module: str
    class_name: str
    where: Place
    by: str = ""
    option: str = ""
    value: ClassValue | None = None
    open: Undecided | None = None


class Table(msgspec.Struct, frozen=True):
    """A registry table, and the keys whose value is not a pair of strings."""

    entries: tuple[Entry, ...]
    unread: tuple[tuple[str, Place], ...]


def read_tables(run: ImportRun, files: Files, names: Iterable[str], package: str) -> Table:
    """Several tables as one; an architecture is what the last of them says, as in a merged dict.

    Raises:
        RegistryError: as :func:`read_table`.
    """
    tables = [read_table(run, files, name, package) for name in names]
    entries = {entry.architecture: entry for table in tables for entry in table.entries}
    return Table(tuple(entries.values()), tuple(one for table in tables for one in table.unread))


def with_overrides(table: Table, overrides: Mapping[str, str]) -> Table:
    """The table as it is once each architecture is registered with its ``module:Class``.

    A registration takes the place of an entry, and adds one where there is none; its module is
    imported by its full name (``register_model`` in vllm/model_executor/models/registry.py).
    """
    entries = {entry.architecture: entry for entry in table.entries}
    for name, named in overrides.items():
        module, _, cls = named.partition(":")
        where = entries[name].where if name in entries else Place("", 0)
        entries[name] = Entry(name, module, cls, where, option=f"--override {name}={named}")
    return Table(tuple(entries.values()), tuple(u for u in table.unread if u[0] not in overrides))


def _without_table(dotted: str, known: Sequence[str]) -> str:
    """What to do where a table is missing: another release, or another name in a rule."""
    if dotted == engine_rule().draft.table:
        return "Releases that have it start at vllm 0.9; check --vllm."
    there = f" There are: {', '.join(known)}." if known else ""
    return f"Check --vllm, and `registry` of the rule that names it.{there}"


def table_names(run: ImportRun, module_name: str) -> tuple[str, ...]:
    """The names of a module that are tables of models: dicts with a pair of strings in them.

    Raises:
        RegistryError: the module cannot be read.
    """
    module = _module(run, module_name)
    return tuple(name for name, value in module.names.items() if _is_table(value))


def _is_table(value: Value) -> bool:
    return isinstance(value, dict) and any(
        isinstance(one, tuple) and len(one) >= _PAIR and all(isinstance(p, str) for p in one[:2])
        for one in value.values()
    )


def named_table(name: str, known: Sequence[str]) -> str | None:
    """The table that a person means: its name, or what sets it apart (``text-generation``).

    ``_TEXT_GENERATION_MODELS`` is also ``text_generation``, in any case, with blanks or hyphens,
    and ``text`` where no other table begins like that.
    """
    if name in known:
        return name
    wanted = _bare(name)
    exact = [one for one in known if _bare(one) == wanted]
    begins = [one for one in known if wanted and _bare(one).startswith(wanted)]
    found = exact or begins
    return found[0] if len(found) == 1 else None


def _bare(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().lower()).strip("_").removesuffix("_models")


def read_table(run: ImportRun, files: Files, dotted: str, package: str) -> Table:
    """The table ``dotted`` (``module.NAME``).

    Args:
        run: an import run whose imports are deferred.
        files: the files of the tree.
        dotted: the module and the name of the table.
        package: the package that module names in the table are relative to.

    Raises:
        RegistryError: the table is missing, or is not something that can be read.
    """
    module_name, _, name = dotted.rpartition(".")
    module = _module(run, module_name)
    value, doubts = run.get(module, name, []) if name in module.names else (None, Doubts())
    origin = module.origins.get(name)
    if origin is None:
        raise RegistryError(
            f"there is no table {name}",
            where=module.path,
            next_step=_without_table(dotted, table_names(run, module_name)),
        )
    why = next((doubt.condition for doubt in doubts), _open_condition(value))
    if why is not None:
        raise _depends(name, why, Place(module.path, origin.line))
    if not isinstance(value, dict):
        raise RegistryError(
            f"{name} is {_kind(value)}, not a dict that can be read",
            where=f"{module.path}:{origin.line}",
            next_step="The audit needs a dict of constants there.",
        )
    return _entries(value, module, origin.line, files, run, package)


def _module(run: ImportRun, name: str) -> ModuleValue:
    located = run.program.modules.get(name)
    where = located[0] if located else name.replace(".", "/") + ".py"
    try:
        module = run.load(name)
    except PythonError as raised:
        error = raised.error
        place = error.chain[0] if error.chain and error.chain[0].path else where
        raise RegistryError(
            f"the registry cannot be read: {error.type}: {error.message}",
            where=str(place),
            next_step=(
                f"What decided it: {error.fact}."
                if error.fact.startswith("--")
                else "Check that --vllm names a vLLM tree."
            ),
        ) from raised
    except RecursionError as error:
        raise RegistryError(
            "the registry cannot be read: it is nested too deeply to be followed",
            where=where,
            next_step="Check that --vllm names a vLLM tree.",
        ) from error
    if not isinstance(module, ModuleValue):
        reason = "it is not Python source"
        if isinstance(module, Opaque):
            reason = module.reason.removeprefix(f"{where} ")
            where = str(module.where) if module.where and module.where.line else where
        raise RegistryError(
            f"the registry cannot be read: {reason}",
            where=where,
            next_step="Check that --vllm names an intact vLLM tree.",
        )
    return module


def _open_condition(value: Value) -> Undecided | None:
    """The condition by which a value is one of several, if it is."""
    if not isinstance(value, Either):
        return None
    guard = value.options[0][0]
    return Undecided("one of several values", guard.where, guard.text)


def _depends(name: str, why: Undecided, where: Place) -> RegistryError:
    """The error of a table that is another one by a condition that stayed open."""
    condition = f"`{why.text}`" if why.text else why.reason
    return RegistryError(
        f"what {name} is depends on {condition}, which could not be decided",
        where=str(why.where or where),
        next_step="Decide it with --assume 'CONDITION=true' or --env NAME=VALUE.",
    )


def _kind(value: Value) -> str:
    match value:
        case Opaque():
            return f"`{value.text or value.reason}`"
        case None:
            return "None"
        case _:
            return f"a {type(value).__name__}"


def _entries(
    value: dict[Value, Value],
    module: ModuleValue,
    line: int,
    files: Files,
    run: ImportRun,
    package: str,
) -> Table:
    known = _lines_of_keys(files.lines(module.path))
    entries: list[Entry] = []
    unread: list[tuple[str, Place]] = []
    for key, target in value.items():
        where = Place(module.path, _line_of(key, known, line))
        match target:
            case (str() as relative, str() as class_name, *_) if isinstance(key, str):
                module_name = absolute(relative, run.conventions.roots, package)
                entries.append(Entry(key, module_name, class_name, where))
            case _:
                unread.append((str(key), where))
    return Table(tuple(entries), tuple(unread))


def absolute(relative: str, roots: Collection[str], package: str) -> str:
    """The full name of a module in a table: as given when it starts at a root of the tree."""
    head = relative.partition(".")[0]
    return relative if head in roots else f"{package}.{relative}"


def _lines_of_keys(lines: Iterable[bytes]) -> dict[bytes, list[int]]:
    """The lines, from 1, on which each key of a dict stands in its file."""
    found: dict[bytes, list[int]] = {}
    for number, line in enumerate(lines, 1):
        key = _KEY.match(line)
        if key is not None:
            found.setdefault(key[1], []).append(number)
    return found


def _line_of(key: Value, known: Mapping[bytes, Sequence[int]], start: int) -> int:
    """The line of a key, searched from the table's first line on, then in the tables above it."""
    numbers = known.get(str(key).encode(), ())
    return next((number for number in numbers if number >= start), next(iter(numbers), start))
