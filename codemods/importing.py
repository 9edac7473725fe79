"""Where an import belongs, as isort (and ruff's ``I`` rules) sort it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from codemods.layout import _break, code

Line = cst.SimpleStatementLine | cst.BaseCompoundStatement


def add_import(module: cst.Module, package: str, dotted: str, width: int) -> cst.Module:
    """The module with ``dotted`` (``package.module.Name``) imported by its name.

    Args:
        module: the file.
        package: the package that its relative imports start from.
        dotted: what is imported.
        width: the longest line.
    """
    origin, _, name = dotted.rpartition(".")
    lines = list(module.body)
    for index, line in enumerate(lines):
        found = _from(line)
        if found is not None and _absolute(found, package) == origin:
            if name in _plain_names(found):
                return module
            if _plain_names(found) != _names(found):
                continue  # isort keeps what is renamed on a line of its own
            lines[index] = _with_name(line, found, name, width)
            return module.with_changes(body=lines)
    relative = _is_relative_style(lines, package, origin)
    source = f".{origin.removeprefix(f'{package}.')}" if relative else origin
    statement = cst.parse_statement(f"from {source} import {name}", module.config_for_parsing)
    lines.insert(*_position(lines, source, statement))
    return module.with_changes(body=lines)


def _from(line: Line) -> cst.ImportFrom | None:
    one = _any_from(line)
    return one if one is not None and not isinstance(one.names, cst.ImportStar) else None


def _names(found: cst.ImportFrom) -> list[str]:
    assert not isinstance(found.names, cst.ImportStar)
    return [code(alias.name) for alias in found.names]


def _plain_names(found: cst.ImportFrom) -> list[str]:
    """The names that an import binds as they are."""
    assert not isinstance(found.names, cst.ImportStar)
    return [code(alias.name) for alias in found.names if alias.asname is None]


def _source(found: cst.ImportFrom) -> str:
    return "." * len(found.relative) + (code(found.module) if found.module is not None else "")


def _absolute(found: cst.ImportFrom, package: str) -> str:
    """The module that an import names (PEP 328)."""
    module = code(found.module) if found.module is not None else ""
    level = len(found.relative)
    if not level:
        return module
    parts = package.split(".")
    base = parts[: len(parts) - level + 1]
    return ".".join([*base, *([module] if module else [])])


def _is_relative_style(lines: Sequence[Line], package: str, origin: str) -> bool:
    """Whether the file names neighbours of its own package relatively."""
    if not origin.startswith(f"{package}."):
        return False
    return any(one is not None and len(one.relative) == 1 for one in map(_from, lines))


def _with_name(line: Line, found: cst.ImportFrom, name: str, width: int) -> Line:
    """The import with one more name, in the order of isort."""
    assert isinstance(line, cst.SimpleStatementLine)
    assert not isinstance(found.names, cst.ImportStar)
    names = list(found.names)
    index = next((i for i, a in enumerate(names) if member_key(code(a.name)) > member_key(name)),
                 len(names))  # fmt: skip
    names.insert(index, cst.ImportAlias(name=cst.Name(name)))
    flat = [cst.ImportAlias(name=alias.name, asname=alias.asname) for alias in names]
    one = found.with_changes(names=flat, lpar=None, rpar=None)
    exploded = found.lpar is not None and isinstance(found.names[-1].comma, cst.Comma)
    if exploded or len(code(one)) > width:
        step = "    "
        commas = [cst.Comma(whitespace_after=_break(step))] * (len(flat) - 1)
        commas.append(cst.Comma(whitespace_after=_break("")))
        split = [a.with_changes(comma=c) for a, c in zip(flat, commas, strict=True)]
        one = found.with_changes(
            names=split, lpar=cst.LeftParen(whitespace_after=_break(step)), rpar=cst.RightParen()
        )
    return line.with_changes(body=[one])


def member_key(name: str) -> tuple[int, list[tuple[int, int, str]], str]:
    """How isort orders members: constants, classes, the rest; numbers by value, case apart."""
    if name.isupper() and len(name) > 1:
        kind = 0
    elif name[:1].isupper():
        kind = 1
    else:
        kind = 2
    return kind, _natural(name), name


def _natural(text: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"\d+|\D+", text.lower())
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _module_key(source: str) -> tuple[int, list[tuple[int, int, str]]]:
    """Relative modules after absolute ones, the furthest first."""
    level = len(source) - len(source.lstrip("."))
    return (1, [(0, -level, ""), *_natural(source[level:])]) if level else (0, _natural(source))


def _before_imports(lines: Sequence[Line]) -> int:
    """The last line of what comes before any ``from``: the docstring, and plain imports."""
    last = -1
    for index, line in enumerate(lines):
        one = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        doc = index == 0 and isinstance(one, cst.Expr)
        if doc or isinstance(one, cst.Import):
            last = index
    return last


def _any_from(line: Line) -> cst.ImportFrom | None:
    """The ``from`` of a line, with a star or without."""
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        one = line.body[0]
        return one if isinstance(one, cst.ImportFrom) else None
    return None


def _position(lines: list[Line], source: str, statement: Line) -> tuple[int, Line]:
    """Where the import goes: among those of its section, by the name of the module."""
    local = source.startswith(".")
    root = source.partition(".")[0]
    last = _before_imports(lines)
    first = True
    for index, line in enumerate(lines):
        found = _any_from(line)
        if found is None:
            continue
        other = _source(found)
        same = other.startswith(".") if local else other.partition(".")[0] == root
        renamed = not isinstance(found.names, cst.ImportStar) and not _plain_names(found)
        mine, theirs = _module_key(source), _module_key(other)
        if same and (theirs > mine or (renamed and theirs == mine)):
            assert isinstance(line, cst.SimpleStatementLine)
            assert isinstance(statement, cst.SimpleStatementLine)
            # Blank lines in front belong to the section, not to its first import.
            front = list(line.leading_lines)
            blank = next((i for i, one in enumerate(front) if one.comment), len(front))
            lines[index] = line.with_changes(leading_lines=front[blank:])
            return index, statement.with_changes(leading_lines=front[:blank])
        if same or first or (not local and not other.startswith(".")):
            last, first = index, False
    return last + 1, statement
