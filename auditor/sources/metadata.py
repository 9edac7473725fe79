"""What a Python project says of itself: its name, its version, its entry points, what it requires.

Read are ``entry_points.txt`` of an installed or built distribution, ``pyproject.toml`` (PEP 621,
and Poetry's own table), ``setup.cfg``, and the literals of ``setup.py``, which is parsed and never
run. Specification of entry points: https://packaging.python.org/specifications/entry-points
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from auditor.errors import SourceError
from auditor.sources.tree import Tree

_SECTION = re.compile(r"\[(?P<name>[^\]]+)\]\s*$")
_ITEM = re.compile(r"(?P<name>[^=\s][^=]*?)\s*=\s*(?P<value>\S.*?)?\s*$")


class EntryPoint(NamedTuple):
    """One entry point: its group, its name, the object that it names, and where it says so."""

    group: str
    name: str
    target: str
    path: str
    line: int


class Unread(NamedTuple):
    """A place that could say something of the project, and cannot be read."""

    path: str
    line: int
    reason: str


@dataclass(slots=True)
class Metadata:
    """What a project says of itself; each fact from the first file that says it."""

    name: str = ""
    version: str | None = None
    entry_points: dict[tuple[str, str], EntryPoint] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    unread: list[Unread] = field(default_factory=list)

    def add(self, group: str, name: str, target: str, path: str, line: int) -> None:
        """An entry point; of two with one name the first file counts."""
        self.entry_points.setdefault(
            (group, name), EntryPoint(group, name, target.partition("[")[0].strip(), path, line)
        )


def metadata_of(tree: Tree) -> Metadata:
    """Everything that the files of a project say of it."""
    files, found = tree.files(), Metadata()
    built = sorted(path for path in files if path.endswith(".dist-info/entry_points.txt"))
    eggs = sorted(path for path in files if path.endswith(".egg-info/entry_points.txt"))
    for path in _headers_in(files):
        _read_headers(_text(tree, path), found)
    for path in built:
        _read_entry_points(_text(tree, path), path, found)
    if "pyproject.toml" in files:
        _read_pyproject(_text(tree, "pyproject.toml"), found)
    if "setup.cfg" in files:
        _read_setup_cfg(_text(tree, "setup.cfg"), found)
    if "setup.py" in files:
        _read_setup_py(_text(tree, "setup.py"), found)
    for path in eggs:
        _read_entry_points(_text(tree, path), path, found)
    if built or eggs:
        # What a build has written down says what setup.py came to.
        found.unread = [one for one in found.unread if one.path != "setup.py"]
    found.name = canonicalize_name(found.name) if found.name else ""
    return found


def _headers_in(files: frozenset[str]) -> list[str]:
    ends = ("PKG-INFO", ".dist-info/METADATA", ".egg-info/PKG-INFO")
    return sorted(path for path in files if path == ends[0] or path.endswith(ends[1:]))


def _text(tree: Tree, path: str) -> str:
    try:
        return tree.read(path).decode("utf-8", "replace").replace("\r\n", "\n")
    except SourceError:
        # It is listed among the problems of the source.
        return ""


def _read_headers(text: str, found: Metadata) -> None:
    """Core metadata: ``PKG-INFO`` or ``METADATA``."""
    requires = []
    for line in text.partition("\n\n")[0].splitlines():
        key, separator, value = line.partition(":")
        if not separator or line[:1].isspace():
            continue
        match key.lower():
            case "name":
                found.name = found.name or value.strip()
            case "version":
                found.version = found.version or value.strip()
            case "requires-dist":
                requires.append(value.strip())
    found.requires = found.requires or tuple(requires)


def _read_entry_points(text: str, path: str, found: Metadata) -> None:
    group = ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if section := _SECTION.match(stripped):
            group = section["name"].strip()
        elif item := _ITEM.match(stripped):
            found.add(group, item["name"], item["value"] or "", path, number)


def _read_setup_cfg(text: str, found: Metadata) -> None:
    """``[options.entry_points]``: a group a key, its entry points on the lines below it."""
    section = group = ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if not line[0].isspace() and (header := _SECTION.match(stripped)):
            section, group = header["name"].strip(), ""
        elif section == "options.entry_points" and not line[0].isspace():
            group = stripped.partition("=")[0].strip()
        elif section == "options.entry_points" and (item := _ITEM.match(stripped)):
            found.add(group, item["name"], item["value"] or "", "setup.cfg", number)
        elif section == "metadata" and (item := _ITEM.match(stripped)):
            _read_setup_cfg_fact(item["name"], item["value"] or "", found)


def _read_setup_cfg_fact(name: str, value: str, found: Metadata) -> None:
    if name == "name":
        found.name = found.name or value
    elif name == "version" and not value.startswith(("attr:", "file:")):
        found.version = found.version or value


def _read_pyproject(text: str, found: Metadata) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        found.unread.append(Unread("pyproject.toml", int(line[1]) if line else 0, str(error)))
        return
    project, poetry = _table(document, "project"), _table(document, "tool", "poetry")
    for key in (project, poetry):
        found.name = found.name or _string(key.get("name"))
        found.version = found.version or _string(key.get("version")) or None
    listed = project.get("dependencies")
    if isinstance(listed, list):
        found.requires = found.requires or tuple(one for one in listed if isinstance(one, str))
    for groups in (_table(project, "entry-points"), _table(poetry, "plugins")):
        for group, entries in groups.items():
            for name, target in entries.items() if isinstance(entries, dict) else ():
                if isinstance(target, str):
                    line_of = _line_of(text, group, name)
                    found.add(group, name, target, "pyproject.toml", line_of)


def _table(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = document.get(key)
        document = inner if isinstance(inner, dict) else {}
    return document


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _line_of(text: str, group: str, name: str) -> int:
    """The line of a key below the table that names its group; that of the table without one."""
    table = 0
    for number, line in enumerate(text.splitlines(), 1):
        if group in line and not table:
            table = number
        if table and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*=""", line):
            return number
    return table


# --- setup.py -------------------------------------------------------------------------------------


class _NotLiteral(Exception):  # noqa: N818 - carries the place to whoever asked
    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def _read_setup_py(source: str, found: Metadata) -> None:
    """The literal keywords of the call of ``setup()``; nothing of the file is run."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 0
        found.unread.append(Unread("setup.py", line, f"does not parse: {error}"))
        return
    names = _constants(module)
    for call in _calls_of_setup(module):
        keywords = dict(_keywords(call, names, found))
        found.name = found.name or _literal_text(keywords.get("name"), names)
        found.version = found.version or _literal_text(keywords.get("version"), names) or None
        if "entry_points" in keywords:
            _read_literal_groups(keywords["entry_points"], names, found)
        _read_requires(keywords.get("install_requires"), names, found)


#: Methods that change a list or a dict.
_CHANGING = frozenset(("append", "clear", "extend", "insert", "pop", "setdefault", "update"))


def _constants(module: ast.Module) -> dict[str, ast.expr]:
    """Names that the module binds once, at its top level, to what nothing changes afterwards."""
    bound: dict[str, list[ast.expr]] = {}
    for stmt in ast.walk(module):
        targets = (
            stmt.targets if isinstance(stmt, ast.Assign)
            else [stmt.target] if isinstance(stmt, ast.AugAssign | ast.AnnAssign | ast.For)
            else []
        )  # fmt: skip
        changed = [one.value for one in targets if isinstance(one, ast.Subscript)]
        if isinstance(stmt, ast.Call) and getattr(stmt.func, "attr", "") in _CHANGING:
            changed.append(stmt.func.value)  # type: ignore[attr-defined]
        for one in changed:
            if isinstance(one, ast.Name):
                bound.setdefault(one.id, []).append(ast.Name(id="", lineno=one.lineno))
        for target in targets:
            if isinstance(target, ast.Name):
                value = getattr(stmt, "value", None) if stmt in module.body else None
                bound.setdefault(target.id, []).append(
                    value or ast.Name(id="", lineno=target.lineno)
                )
    return {name: values[0] for name, values in bound.items() if len(values) == 1}


def _calls_of_setup(module: ast.Module) -> Iterator[ast.Call]:
    nodes = list(ast.walk(module))
    named = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == "setup"
    }
    for node in nodes:
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if name == "setup" or name in named:
                yield node


def _keywords(
    call: ast.Call, names: Mapping[str, ast.expr], found: Metadata
) -> Iterator[tuple[str, ast.expr]]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value
            continue
        value = _behind(keyword.value, names)
        if not isinstance(value, ast.Dict):
            reason = "setup() is called with keywords that are not written out"
            found.unread.append(Unread("setup.py", call.lineno, reason))
            continue
        for key, item in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, item


def _behind(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    for _ in range(len(names)):
        if not isinstance(node, ast.Name) or node.id not in names:
            break
        node = names[node.id]
    return node


def _literal_text(node: ast.expr | None, names: Mapping[str, ast.expr]) -> str:
    value = _behind(node, names) if node is not None else None
    return _string(value.value) if isinstance(value, ast.Constant) else ""


def _read_literal_groups(node: ast.expr, names: Mapping[str, ast.expr], found: Metadata) -> None:
    value = _behind(node, names)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        before = dict(found.entry_points)
        _read_entry_points(value.value, "setup.py", found)
        for new in found.entry_points.keys() - before.keys():
            found.entry_points[new] = found.entry_points[new]._replace(line=value.lineno)
        return
    if not isinstance(value, ast.Dict):
        reason = "entry_points of setup() is not written out"
        found.unread.append(Unread("setup.py", node.lineno, reason))
        return
    for key, item in zip(value.keys, value.values, strict=True):
        try:
            if key is None:
                raise _NotLiteral(item.lineno)
            group = "".join(text for text, _ in _texts(key, names))
            for listed, line in _texts(item, names):
                for part in listed.splitlines():
                    name, separator, target = part.partition("=")
                    if separator:
                        found.add(group, name.strip(), target.strip(), "setup.py", line)
        except _NotLiteral as unread:
            reason = "an entry point of setup() is not written out"
            found.unread.append(Unread("setup.py", unread.line, reason))


def _texts(node: ast.expr, names: Mapping[str, ast.expr]) -> Iterator[tuple[str, int]]:
    """The strings of a literal: of one string, a sequence, a sum, or an f-string of constants."""
    value = _behind(node, names)
    match value:
        case ast.Constant(value=str(text)):
            yield text, value.lineno
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                yield from _texts(item, names)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [*_texts(left, names), *_texts(right, names)]
            if _is_text(left, names):
                yield "".join(text for text, _ in parts), value.lineno
            else:
                yield from parts
        case ast.JoinedStr(values=nodes):
            texts = [_texts(one.value if isinstance(one, ast.FormattedValue) else one, names)
                     for one in nodes]  # fmt: skip
            yield "".join(text for part in texts for text, _ in part), value.lineno
        case _:
            raise _NotLiteral(node.lineno)


def _is_text(node: ast.expr, names: Mapping[str, ast.expr]) -> bool:
    value = _behind(node, names)
    if isinstance(value, ast.BinOp):
        return _is_text(value.left, names)
    return isinstance(value, ast.JoinedStr | ast.Constant)


def _read_requires(node: ast.expr | None, names: Mapping[str, ast.expr], found: Metadata) -> None:
    """What is required is a help and no answer: where it is not literal, it is not known."""
    if node is None or found.requires:
        return
    try:
        found.requires = tuple(text for text, _ in _texts(node, names))
    except _NotLiteral:
        found.requires = ()
