"""Where a text has a name as a word, and where it can reach a module's name by it from elsewhere.

A name that stands alone means what it means where it stands: in a function, a class or a module.
What another module binds is reached as an attribute (``module.name``), by ``from module import
name``, in the pattern of a ``match``, or by a text that code looks up. So an edit that binds a name
in one module is of no concern to a file that only has a variable of that name, or a library.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import msgspec

from auditor import facts as f

if TYPE_CHECKING:
    import ast

#: A statement ``from library import …`` whose end is plain to see.
_FROM = re.compile(
    rb"^[ \t]*from[ \t]+(\w+)(?:\.\w+)*[ \t]+import[ \t]*(?:\([^)#\\\"']*\)|[^\n(#\\\"';]*)", re.M
)
#: The start of a line that does not go on with the one before, where ``from tools`` may stand.
_IMPORT = re.compile(rb"(?<!\\)\n[ \t]*(?:import|from)[ \t]+\Z")
_CASE = re.compile(rb"^[ \t]*case\b", re.M)
_NAMES = re.compile(rb"(?:[\w\s,()\\\x80-\xff]++|#[^\n]*\n)*+")
_EQUALS = re.compile(rb"(?:[ \t\n\f\\]++|#[^\n]*\n)*+=")
_QUOTES = (b'"', b"'")
_INSIDE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_OF_WORDS = frozenset(bytes((one,)) for one in _INSIDE)
#: What stands before a word in the list of an import or a pattern.
_LISTING = (b",", b"(", b"import")
_LONG = re.compile(rb"\"\"\"|'''")
#: The longest list of names that an import is looked for in front of.
_LONGEST = 20_000
#: How far before a word it is looked for what stands there.
_BEFORE = 120
_BLANK = b" \t\r\n\f\\"
#: What a source says by a word: nothing of another module, what a parser must say, or something.
_NOTHING, _PERHAPS, _SOMETHING = range(3)


def mentioned(names: Iterable[str], texts: Iterable[bytes]) -> bool:
    """Whether one of the names stands in one of the texts as a word, in any spelling of it."""
    words = [(name.encode(), _word(name)) for name in names]
    return any(
        name in text and word.search(text) for text in map(_plainly, texts) for name, word in words
    )


def told(names: Iterable[str], texts: Iterable[bytes]) -> bool:
    """Whether one of the names stands in one of the texts as anything but a library's name.

    That is one that is imported there, or the first of a dotted name.
    """
    words = [name.encode() for name in names]
    return any(
        not _is_imported(text, start)
        and (not _is_root(text, end) or text[max(start - 1, 0) : start] in (b".", b":"))
        for text in map(_plainly, texts)
        for word in words
        for start, end in _words(word, text)
    )


def reached(
    names: Iterable[str], text: bytes, parsed: Callable[[AbstractSet[str], bytes], bool] | None
) -> bool:
    """Whether a source can reach one of the names in another module.

    Of some words only a parser can say it: ``parsed`` is asked then, as :func:`reached_by_nodes`
    answers. Without it, as for a part of a file, the answer is yes.
    """
    plain = _plainly(text)
    said = {name: _said(name, plain) for name in names if name.encode() in plain}
    if _SOMETHING in said.values():
        return True
    perhaps = {name for name, one in said.items() if one == _PERHAPS}
    return bool(perhaps) and (parsed is None or parsed(perhaps, text))


def reached_by_nodes(names: AbstractSet[str], text: bytes) -> bool:
    """Whether the syntax of a whole file has one of the names where another module may be meant.

    Names in texts are not looked at. What cannot be parsed may have any.
    """
    import ast

    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(not names.isdisjoint(_other_names(node)) for node in nodes)


def _other_names(node: ast.AST) -> Iterable[str]:
    import ast

    match node:
        case ast.Attribute(attr=attr):
            return (attr,)
        case ast.Import(names=modules):
            return [part for alias in modules for part in alias.name.split(".")[1:]]
        case ast.ImportFrom(module=module, names=found, level=level):
            if level == 0 and module and is_library(module):
                return ()
            return [*(module or "").split("."), *(alias.name for alias in found)]
        case ast.MatchClass(kwd_attrs=attributes):
            return attributes
    return ()


def is_library(module: str) -> bool:
    """Whether a module is one of Python's own, which no tree has, but a plugin may have."""
    return module.partition(".")[0] in sys.stdlib_module_names


class _Source(msgspec.Struct, frozen=True):
    """A piece of source that is told, and that nobody looks up."""

    text: bytes


def texts_of(value: object, *, elsewhere: bool = False) -> Iterator[bytes]:
    """Every name and text in facts or in a document, however deeply they are nested.

    With ``elsewhere``, only what can reach a name in another module, as sources spell it.
    """
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            text = one.encode("utf-8", "surrogatepass")
            yield b'"%b"' % text if elsewhere else text
        elif isinstance(one, tuple | list):
            left.extend(one)
        elif isinstance(one, dict):
            left.extend((*one.keys(), *one.values()))
        elif elsewhere and isinstance(one, _Source):
            yield one.text
        elif elsewhere and isinstance(one, f.Name | f.Import | f.ImportFrom):
            left.extend(_beyond(one))
        elif isinstance(one, msgspec.Struct):
            for name in one.__struct_fields__:
                held = getattr(one, name)
                if elsewhere and name == "uses":
                    held = [part for use in held for part in use.split(".")[1:]]
                elif elsewhere and name == "text" and isinstance(held, str):
                    held = _Source(held.encode("utf-8", "surrogatepass"))
                left.append(held)


def _beyond(node: f.Name | f.Import | f.ImportFrom) -> list[str]:
    """What a name or an import says of other modules than those it starts from."""
    if isinstance(node, f.Name):
        return []
    parts = node.module.split(".")
    if isinstance(node, f.Import):
        return parts[1:]
    if node.level == 0 and is_library(node.module):
        return []
    return [*parts[node.level == 0 :], *(name for name, _ in node.names)]


def _word(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"\b%b\b" % re.escape(name.encode()))


def _words(name: bytes, text: bytes) -> Iterator[tuple[int, int]]:
    """Where a name stands as a word; much faster than an expression that begins with a boundary."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if text[end : end + 1] not in _OF_WORDS and (not start or text[start - 1] not in _INSIDE):
            yield start, end
        start = text.find(name, end)


def _said(name: str, text: bytes) -> int:
    """What a source says by a name, at worst."""
    worst, unsure = _NOTHING, []
    for start, end in _words(name.encode(), text):
        close, after = text[max(start - 1, 0) : start], text[end : end + 1]
        rooted = _is_root(text, end)
        if close == b"." or after in _QUOTES or (close in _QUOTES and not rooted):
            return _SOMETHING
        if _is_imported(text, start):
            continue
        for code in _code_before(text, start):
            if code.endswith(b"."):
                worst = _PERHAPS
            elif code.endswith(_LISTING) and not rooted:
                unsure.append((start, end))
    if unsure and worst == _NOTHING and _is_listed(unsure, text):
        return _PERHAPS
    return worst


def _is_imported(text: bytes, start: int) -> bool:
    """Whether ``import`` or ``from`` stands before a word, at the start of a line."""
    if start > _BEFORE:
        return _IMPORT.search(text, start - _BEFORE, start) is not None
    return _IMPORT.search(b"\n" + text[:start]) is not None


def _is_root(text: bytes, end: int) -> bool:
    """Whether a word that ends there is the first of a dotted name."""
    after = text[end : end + 2]
    return after[:1] == b"." and (after[1:].isalpha() or after[1:] == b"_")


def _code_before(text: bytes, start: int) -> Iterator[bytes]:
    """What may be the last code before a word: comments are no code, and texts may have a ``#``."""
    end = start
    while end:
        end = len(text[:end].rstrip(_BLANK)) if text[end - 1] in _BLANK else end
        first = text.rfind(b"\n", 0, end) + 1
        line = text[first:end]
        comment = line.find(b"#") if text.find(b"\n", end, start) >= 0 else -1
        before = line[: max(comment, 0)]
        in_text = any(quote in before for quote in _QUOTES) or _LONG.search(line) is not None
        if comment < 0 or in_text or text[first - 2 : first] == b"\\\n":
            yield line
            in_text = True
        sign = comment
        while sign >= 0 and (in_text or before.strip()):
            yield line[:sign].rstrip(_BLANK)
            sign = line.find(b"#", sign + 1)
        if comment < 0 or before.strip():
            return
        end = first


def _is_listed(words: list[tuple[int, int]], text: bytes) -> bool:
    """Whether a word after a comma or a bracket may be in the list of an import or a pattern."""
    libraries = [match.span() for match in _FROM.finditer(text) if is_library(match[1].decode())]
    patterns = _CASE.search(text) is not None
    for start, end in words:
        if any(first <= start < last for first, last in libraries):
            continue
        if _in_import(text, start) or (patterns and _EQUALS.match(text, end)):
            return True
    return False


def _in_import(text: bytes, start: int) -> bool:
    """Whether nothing but names, commas and comments stands between an ``import`` and a word."""
    keyword = text.rfind(b"import", 0, start)
    while keyword >= 0:
        after = keyword + len(b"import")
        if start - after > _LONGEST or _NAMES.fullmatch(text, after, start):
            return True
        if b"#" not in text[text.rfind(b"\n", 0, keyword) + 1 : keyword]:
            return False
        # It may be a word of a comment in the list.
        keyword = text.rfind(b"import", 0, keyword)
    return False


def _plainly(text: bytes) -> bytes:
    """A text with its lines and its names as Python reads them (PEP 3131)."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.decode("utf-8", "replace")).encode()
