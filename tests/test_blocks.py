"""Classes and functions off the syntax of a whole file are what their lines alone give."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

import pytest

from auditor import facts as f
from auditor.headpath.bodies import Functions, Syntax
from auditor.program import Files
from auditor.sources.tree import MemoryTree, Source, Tree
from auditor.syntax.blocks import blocks

SOURCES = {
    "a class": b"x = 1\nclass A:\n    y = 2\n    def f(self): ...\n    def f(self): return 2\n",
    "a function": b"def f(a):\n    return a\n\n\nasync def g():\n    return f(1)\n",
    "decorated": b"import d\n@d.one\n@d(2)\nclass A:\n    @d\n    def f(self): ...\n",
    "in branches": (
        b"try:\n    import x\nexcept ImportError:\n    class A:\n        def f(self): ...\n"
        b"else:\n    if x:\n\n        @x.y\n        class A:\n            def g(self): ...\n"
        b"finally:\n    with x:\n        def h(): ...\n"
    ),
    "a class of one branch": b"class A:\n    if 1:\n        def f(self): ...\n",
    "a class of one class": b"class A:\n    class B:\n        def f(self): ...\n",
    "tabs": b"if 1:\n\tclass A:\n\t\tdef f(self):\n\t\t\treturn 1\n",
    "other line ends": b"\r\nclass A:\r\n    def f(self):\r\n        return '''a\r\nb'''\r\n",
    "a long string": b"class A:\n    def f(self):\n        return '''\nclass B:\n    pass\n'''\n",
    "beyond ASCII": "class A:\n    def f(self, ü): return 'ß', ü\n".encode(),
}
#: What its lines alone give nothing or something else for.
LEFT_OUT = {
    "a declared encoding": b"# coding: latin-1\nclass A:\n    def f(self): return '\xfc'\n",
    "a byte order mark": b"\xef\xbb\xbfclass A:\n    def f(self): ...\n",
    "behind a form feed": b"x = 1\n\x0cclass A:\n    def f(self): ...\n",
    "a decorator in brackets": b"@(\n    d)\nclass A:\n    def f(self): ...\n",
}


FACTS, GRAMMAR = ("facts", "", 0, 0, 0), ("grammar", "", 0, 0, 0)


def tree_of(source: bytes) -> Tree:
    return MemoryTree({"pkg/a.py": source})


def definitions(body: Iterable[f.Stmt]) -> Iterator[f.Class | f.Func]:
    for stmt in body:
        match stmt:
            case f.Class() | f.Func():
                yield stmt
            case f.If(body=inner, orelse=orelse):
                yield from definitions((*inner, *orelse))
            case f.With(body=inner):
                yield from definitions(inner)
            case f.Try(body=inner, handlers=handlers, orelse=orelse, final=final):
                caught = [one for handler in handlers for one in handler.body]
                yield from definitions((*inner, *caught, *orelse, *final))


def dumped(functions: Functions) -> dict[str, str]:
    return {name: ast.dump(one, include_attributes=True) for name, one in functions.items()}


def both(tree: Tree, path: str) -> list[tuple[object, object, bool]]:
    """What each definition is by its lines alone, and once the file was parsed in full."""
    files = Files(tree)
    facts = files.facts(path)
    assert isinstance(facts, f.ModuleFacts)
    found = list(definitions(facts.body))
    alone = Syntax(files)
    before = [dumped(alone.functions(path, one.start, one.end)) for one in found]
    again = files.over(tree, ())
    again.grammar(path)
    whole = Syntax(again)
    after = [dumped(whole.functions(path, one.start, one.end)) for one in found]
    assert {*again.probes()[path], FACTS} == {*files.probes()[path], GRAMMAR}
    known = [again.definition(path, one.start, one.end) is not None for one in found]
    return list(zip(before, after, known, strict=True))


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_they_are_what_their_lines_alone_give(source: bytes) -> None:
    found = both(tree_of(source), "pkg/a.py")
    assert found
    for before, after, known in found:
        assert before == after
        assert known


@pytest.mark.parametrize("source", LEFT_OUT.values(), ids=LEFT_OUT)
def test_where_lines_alone_may_give_something_else_they_are_asked(source: bytes) -> None:
    for before, after, known in both(tree_of(source), "pkg/a.py"):
        assert before == after
        assert not known


def test_a_file_that_does_not_parse_says_why() -> None:
    assert isinstance(blocks(b"class A:\n    def f(self): return )\n"), f.Unparsed)


@pytest.mark.network
def test_they_are_the_same_in_a_real_release(release: Callable[[str], Source]) -> None:
    tree = release("0.32.0").tree
    paths = [p for p in sorted(tree.files()) if p.startswith("vllm/model_executor/models/q")]
    known = 0
    for path in paths:
        for before, after, is_known in both(tree, path):
            assert before == after
            known += is_known
    assert known > 100
