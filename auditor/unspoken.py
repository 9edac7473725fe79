"""What an edit has added to a module or taken from it, where nothing speaks of it.

Most edits that do more than move lines define something new: a function, a class, a constant; or
import a module of Python's own. To do so runs nothing of the tree and cannot fail, and the one
thing that is then another is what the name stands for in its module. So an answer stays what it
was if nobody asked for that name:

* nothing that was read of the edited file has it as a word (of most files, their top level alone);
* nothing that was read of other files has it where it can mean that module's, and neither the
  rules nor what was answered speak of it (:mod:`auditor.words`);
* nobody asked for it by a text, which may be spelled in any way, and nobody looked at all names of
  the module (``globals()``, a star import). An import run takes note of both as it meets them, and
  of what ``sys.modules`` is asked for.

That holds for a definition that is gone as well, and for one that is another now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from typing import NamedTuple

import msgspec

from auditor import facts as f
from auditor.factcache import Parsed
from auditor.moved import UNLINED, Lines, moved_lines
from auditor.program import ATTRIBUTE, NAMESPACE, Files, Probe
from auditor.words import is_library, mentioned, reached, reached_by_nodes, texts_of, told

#: More names than these are not looked for: to run again is then the better way.
_MOST_NAMES = 16

#: Nor are more files than these parsed to see what a word in them is.
_MOST_PARSED = 8

#: A file that declares an encoding (PEP 263), in which words may be other bytes.
_ENCODED = re.compile(
    rb"(?:[^\r\n]*(?:\r\n?|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*+(?!utf-?8\b)", re.IGNORECASE
)


class Edit(NamedTuple):
    """How the facts of a file differ from those of before.

    ``lines`` says where each line went that both name; ``names`` are what only one of them binds,
    or each to something else, by a statement that does nothing else but load the ``libraries``.
    """

    lines: Lines
    names: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()

    @property
    def moves(self) -> bool:
        """Whether anything that the facts name is on another line now."""
        return any(old != new for old, new in self.lines.items())


def edit_between(before: Parsed, after: Parsed) -> Edit | None:
    """The edit; None where it may have done more than move lines and define."""
    try:
        lines = moved_lines(before, after)
        if lines is not None:
            return Edit(lines)
        if isinstance(before, f.ModuleFacts) and isinstance(after, f.ModuleFacts):
            return _redefinition(before.body, after.body)
    except RecursionError:
        # Nested too deeply to be compared.
        return None
    return None


def _redefinition(before: tuple[f.Stmt, ...], after: tuple[f.Stmt, ...]) -> Edit | None:
    one, other = list(map(_unlined, before)), list(map(_unlined, after))
    counted, counted_now = Counter(one), Counter(other)
    if ((counted - counted_now) + (counted_now - counted)).total() > 2 * _MOST_NAMES:
        # Each binds a name or does more; and to match many is slow.
        return None
    same = SequenceMatcher[object](None, one, other, autojunk=False)
    lines: Lines = {}
    names: set[str] = set()
    libraries: set[str] = set()
    kept: list[f.Stmt] = []
    for tag, start, end, new_start, new_end in same.get_opcodes():
        if tag == "equal":
            moved = moved_lines(before[start:end], after[new_start:new_end])
            if moved is None or any(
                lines.setdefault(old, new) != new for old, new in moved.items()
            ):
                return None
            kept.extend(after[new_start:new_end])
            continue
        for stmt in (*before[start:end], *after[new_start:new_end]):
            bound = _defined(stmt)
            if bound is None:
                return None
            names |= bound
            if isinstance(stmt, f.Import | f.ImportFrom):
                libraries.update(_with_packages(stmt.module))
    if len(names) > _MOST_NAMES or any(map(_special, names)):
        return None
    if mentioned(names, texts_of(kept)):
        return None
    return Edit(lines, frozenset(names), frozenset(libraries))


def spoken(
    edits: Mapping[str, Edit],
    files: Files,
    probes: Mapping[str, Iterable[Probe]],
    others: Iterable[bytes],
) -> bool:
    """Whether anything that an answer rests on speaks of what edits define.

    Args:
        edits: what was done to files; what each says of its own names has been looked at before.
        files: the files as they are now.
        probes: every file that the answer rests on, and what was asked of it before the edits.
        others: texts that stand in no file of the tree.
    """
    words = frozenset[str]().union(*(edit.names for edit in edits.values()))
    libraries = frozenset[str]().union(*(edit.libraries for edit in edits.values()))
    if told(words, others):
        return True
    parsed = _Parsed()
    for path, asked in probes.items():
        if any(
            kind == ATTRIBUTE and (name in words or name in libraries) for kind, name, *_ in asked
        ):
            return True
        own = edits[path].names if path in edits else frozenset()
        if own and any(kind == NAMESPACE for kind, *_ in asked):
            return True
        theirs = words - own
        text = files.text(path)
        if not isinstance(text, bytes):
            continue
        if _ENCODED.match(text):
            return True
        # Where the word stands at all, it is in the body of a function that nobody read, mostly.
        if reached(theirs, text, parsed) and (
            path in edits
            or any(
                reached(theirs, answer, None)
                for probe in asked
                for answer in said_elsewhere(files, path, probe)
            )
        ):
            return True
    return False


class _Parsed:
    """Asks a parser about whole files, as long as they are few."""

    def __init__(self) -> None:
        self._left = _MOST_PARSED

    def __call__(self, names: AbstractSet[str], text: bytes) -> bool:
        self._left -= 1
        return self._left < 0 or reached_by_nodes(names, text)


def said_elsewhere(files: Files, path: str, probe: Probe) -> Iterator[bytes]:
    """As :func:`said`, of other modules than the file itself, and as sources spell it."""
    match probe[0]:
        case "facts":
            yield from texts_of(files.facts(path), elsewhere=True)
        case "stores" | "sets" | "mentions" | "attribute":
            yield from (b'"%b"' % text for text in said(files, path, probe))
        case _:
            yield from said(files, path, probe)


def said(files: Files, path: str, probe: Probe) -> Iterator[bytes]:
    """The texts that a file answers with to a probe."""
    kind, name, _, start, end = probe
    match kind:
        case "facts":
            yield from texts_of(files.facts(path))
        case "function" | "block":
            yield files.block(path, start, end)
        case "stores" | "sets":
            from auditor.loading import stores_in

            yield from (attribute.encode() for attribute, _ in stores_in(files.text(path)))
        case "guards":
            from auditor.engine import guards_in

            yield repr(guards_in(files.text(path), path, name)).encode()
        case "mentions" | "attribute":
            yield name.encode()
        case "grammar" | "namespace":
            pass
        case _:
            text = files.text(path)
            yield text if isinstance(text, bytes) else b""


def _special(name: str) -> bool:
    """Whether Python itself asks for it, or it may be spelled in another way (PEP 3131)."""
    return (name.startswith("__") and name.endswith("__")) or not name.isascii()


def _defined(stmt: f.Stmt) -> frozenset[str] | None:
    """The names that a statement binds, if it does nothing else and cannot fail."""
    match stmt:
        case f.Func(name=name, decorators=(), uses=(), defaults=()):
            return frozenset((name,))
        case f.Class(
            name=name, bases=(), keywords=(), decorators=(), uses=(), plain=True, body=body
        ):
            return frozenset((name,)) if all(map(_plain_member, body)) else None
        case f.Assign(targets=targets, value=value) if _constant(value):
            names = [target.id for target in targets if isinstance(target, f.Name)]
            return frozenset(names) if len(names) == len(targets) else None
        case f.Import(module=module, asname=bound) if _is_there(module):
            return frozenset((bound or module.partition(".")[0],))
        case f.ImportFrom(module=module, level=0, names=taken) if _is_there(module):
            star = any(name == "*" for name, _ in taken)
            return None if star else frozenset(bound for _, bound in taken)
    return None


def _is_there(module: str) -> bool:
    """Whether importing a module surely does nothing but bind and load it."""
    return is_library(module) and module != "__future__"


def _with_packages(module: str) -> Iterator[str]:
    """A module and the packages that it is in: what importing it loads."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def _plain_member(stmt: f.Stmt) -> bool:
    """Whether it defines something in a class, and nothing by which the class is made."""
    names = None if isinstance(stmt, f.Import | f.ImportFrom) else _defined(stmt)
    return names is not None and (isinstance(stmt, f.Func) or not any(map(_special, names)))


def _constant(node: f.Expr | None) -> bool:
    """Whether evaluating it can only give a constant, or a container of such."""
    match node:
        case f.Const():
            return True
        case f.Sequence(kind="set", items=items):
            return all(isinstance(item, f.Const) for item in items)
        case f.Sequence(items=items):
            return all(map(_constant, items))
        case f.Mapping(keys=keys, values=values):
            return all(isinstance(key, f.Const) for key in keys) and all(map(_constant, values))
    return False


def _unlined(value: object) -> object:
    """Facts without their lines, as what can be compared and hashed."""
    if isinstance(value, tuple):
        return tuple(map(_unlined, value))
    if isinstance(value, msgspec.Struct):
        fields = (name for name in value.__struct_fields__ if name not in UNLINED)
        return (type(value), *(_unlined(getattr(value, name)) for name in fields))
    # 1, 1.0 and True are equal and not the same constant, and so are 0.0 and -0.0.
    return type(value), repr(value) if isinstance(value, float) else value
