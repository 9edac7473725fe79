"""Heads of functions that are read without the parser say what the parser reads in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor import facts as f
from auditor.syntax.heads import Head, read_head
from auditor.syntax.module import module_facts
from auditor.syntax.outline import outline

#: Makes the outline of a file be refused, so that all of it is parsed.
REFUSED = b"\n\f"

PLAIN = {
    "no parameters": "def f():",
    "a method": "def f(self, x: torch.Tensor, y: int | None = None) -> torch.Tensor | None:",
    "text": "def f(x: 'A(:', y=\"B,=\", z: Literal['it\"s', \"a\" \"b\"] = '') -> 'C':",
    "several lines": "def f(\n    a: dict[str,  # of\n        A], # it's\n    *,\n    b=n,\n):",
    "stars": "def f(a, *args: A, b: B = n, c, **kw: C) -> D:",
    "a star alone": "def f(a=1, *, b, c=n.m,):",
    "brackets in brackets": "def f(a: Callable[[A, B[C]], D], b: E[F[G[H]]] = -1) -> I[J[K], L]:",
    "numbers": "def f(a=1, b=-1.5, c=..., d=True, e=None, f=~0):",
    "a name that is sure": "def f(a: int, b=known, c: known.attribute = known.value):",
    "a slice": "def f(a: A[B:C]) -> D:",
    "asynchronous": "async def f(a: A):",
    "what a keyword begins with": "def iff(not_: A, is_=in_):",
    "an operator": "def f(a: A if B else C, b: D < E, c: not F):",
}
NOT_PLAIN = {
    "a call": "def f(a: A(1), b=g(n), c=[n]) -> B:",
    "a display": "def f(a=[n]):",
    "an item": "def f(a=n[1]):",
    "an attribute of an item": "def f(a=n[1].m):",
    "a condition": "def f(a=x if y else z):",
    "a positional parameter": "def f(a: A, /, b: B):",
    "escapes": "def f(a='\\n', b: '\\x41' = 1):",
    "a prefix": "def f(a: f'{n}'):",
    "a prefix of a default": "def f(a=b''):",
    "a letter beyond ASCII": "def f(\u00e4: A):",
    "text beyond ASCII": "def f(a='\u00fc'):",
    "a lambda": "def f(a=lambda: n, b: A = lambda x: x):",
    "a continued line": "def f(a, \\\n    b: A):",
    "a mapping": "def f(a={n: 1}):",
    "spaces before": "def f (a: A):",
    "many names": f"def f(a: {' | '.join(['Name'] * 60)}):",
}
WRONG = {
    "an escape": "def f(a='\\x'):",
    "a default before none": "def f(a=1, b):",
    "two stars": "def f(*a, *b):",
    "a star before nothing": "def f(*):",
    "a star before keywords": "def f(*, **kw):",
    "something behind keywords": "def f(**kw, a):",
    "a default of a star": "def f(*a=1):",
    "two commas": "def f(a,, b):",
    "a comma alone": "def f(,):",
    "a keyword": "def f(a, if):",
    "the name a keyword": "def None(a):",
    "no annotation": "def f(a:):",
    "no default": "def f(a=):",
    "no result": "def f() ->:",
    "a result with a value": "def f() -> A = 1:",
    "two statements": "def f(a: A; b):",
    "two defaults": "def f(a = b = c):",
    "a value that is unpacked": "def f(a=*b):",
    "an annotation that is unpacked": "def f(a: *b):",
    "a result that yields": "def f() -> yield:",
    "a walrus": "def f(a: b := c):",
    "bytes and text": "def f(a=b'' ''):",
    "brackets across": "def f(a: A[, b: B]):",
    "a number": "def f(1a):",
    "a name with a space": "def f(a b):",
}


def source_of(head: str) -> bytes:
    return f"from other import known\n\n{head}\n    return 1\n\nx = 1\n".encode()


def read(source: bytes) -> f.ModuleFacts | f.Unparsed:
    return module_facts(source, "vllm")


@pytest.mark.parametrize("before", ["", "@d(n)\n", "@a.b\n@c\n"])
@pytest.mark.parametrize("head", [*PLAIN.values(), *NOT_PLAIN.values()])
def test_a_head_says_what_the_parser_reads_in_it(before: str, head: str) -> None:
    source = source_of(before + head)
    assert isinstance(read(source), f.ModuleFacts)
    assert read(source) == read(source + REFUSED)


@pytest.mark.parametrize("before", ["", "from __future__ import annotations\n"])
@pytest.mark.parametrize("head", PLAIN.values())
def test_a_plain_head_is_not_parsed_with_the_file(before: str, head: str) -> None:
    source = before.encode() + source_of(head)
    reduced = outline(source)
    assert reduced is not None
    assert b"def" not in reduced.text
    assert read(source) == read(source + REFUSED)


@pytest.mark.parametrize("head", NOT_PLAIN.values())
def test_other_heads_are(head: str) -> None:
    reduced = outline(source_of(head))
    assert reduced is not None
    assert b"def" in reduced.text


def test_bytes_that_are_no_text_are_an_error() -> None:
    source = b"def f(a='\xff'):\n    return 1\n"
    assert isinstance(read(source), f.Unparsed)
    assert read(source) == read(source + REFUSED)


@pytest.mark.parametrize("before", ["", "@d\n"])
@pytest.mark.parametrize("head", WRONG.values())
def test_a_wrong_head_is_an_error_of_the_file(before: str, head: str) -> None:
    source = source_of(before + head)
    assert isinstance(read(source), f.Unparsed)
    assert read(source) == read(source + REFUSED)


@pytest.mark.parametrize(
    "source",
    [
        "x = \\\ndef f():\n    return 1\n",
        "x = 1; \\\ndef f():\n    return 1\n",
        "x = (\ndef f():\n    return 1\n)\n",
        "class A:\n    x = 1\n  def f(self):\n        return 1\n",
        "x = 1\n    def g():\n        return 1\n",
        "@d\n\ndef f():\nx = 1\n",
    ],
)
def test_a_function_at_a_wrong_place_is_an_error(source: str) -> None:
    assert isinstance(read(source.encode()), f.Unparsed)
    assert read(source.encode()) == read(source.encode() + REFUSED)


@pytest.mark.parametrize(
    "source",
    [
        "@d\n# why\n\ndef f(a: A):\n    return 1\n",
        "@d\nclass A:\n    def m(self, a: A): # here\n        return 1 # there\n\ndef f(): pass\n",
        "class A:\n    @d\n    def m(self):\n        pass\n    def n(self, b: B):\n        pass",
        "@d\nasync \\\ndef f(a: A):\n    return 1\n",
        "if x:\n    pass\n    def f(a: A):\n        return 1\nelse:\n    pass; pass\n",
        "def f():\n    def g(a: A):\n        return 1\n    return g\n",
        "def f(a=(1)):\n    x = 1\\\n\n    def g(a: A):\n        return 1\n",
        "def f(a: A):\n    return '''\ndef g(b: B):\n    pass\n'''\n",
        "import a\ndef f(x: a.b = a.c):\n    return 1\n\ndef g(x: f = f):\n    return 1\ndel f\n",
    ],
)
def test_functions_stand_where_they_did(source: str) -> None:
    assert isinstance(read(source.encode()), f.ModuleFacts)
    assert read(source.encode()) == read(source.encode() + REFUSED)


PIECES = st.sampled_from(
    [
        "a", "b", "*", "**", ",", ", ", ":", "=", " ", "[", "]", "int", "A.b", "None", "1", "''",
        "'x'", "f''", "|", "\n", "-", "/", "if", "->", "known", ".", "# it's\n", "...", "lambda",
    ]
)  # fmt: skip


@settings(max_examples=600)
@given(st.lists(PIECES, max_size=9), st.lists(PIECES, max_size=3), st.booleans())
def test_whatever_a_head_holds(parameters: list[str], result: list[str], arrow: bool) -> None:
    head = f"def f({''.join(parameters)})" + (f" -> {''.join(result)}" if arrow else "") + ":"
    source = source_of(head)
    whole = read(source + REFUSED)
    found = read(source)
    # Where an error is in brackets that do not close, the parser may tell it in other words.
    assert found == whole or (isinstance(found, f.Unparsed) and isinstance(whole, f.Unparsed))


PARAMETERS = st.sampled_from(
    ["a", "b=1", "*", "*args", "**kw", "", "c: A", "d: A[B, C] = n", "e=n.m", "*r: D", "/", " f "]
)


@settings(max_examples=300)
@given(st.lists(PARAMETERS, max_size=6))
def test_the_order_of_parameters(parameters: list[str]) -> None:
    source = source_of(f"def f({', '.join(parameters)}) -> R:")
    assert read(source) == read(source + REFUSED)


def test_what_a_head_reads_in_order() -> None:
    parameters = b"self, a: A, b: B[C.d] = n, *args: D, c: int = e.m, **kw: E"
    late = (("b", f.Name("n")),)
    read_names = ("A", "B", "C.d", "D", "int", "E", "R")
    assert read_head(parameters, b" R") == Head(("n", "e.m"), read_names, late)
