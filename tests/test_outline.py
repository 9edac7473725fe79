"""The outline of a file gives the facts of the whole file, or is refused."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees.minivllm import INIT, WITH_METHOD, coverage, row_of

from auditor import facts as f
from auditor.sources.tree import Source
from auditor.syntax.module import module_facts
from auditor.syntax.outline import outline

FOLLOWED = {
    "a function": "def f(x):\n    return x\n",
    "a method and what follows": "class A:\n    def m(self):\n        return 1\n\n    x = 1\ny = 2",
    "a head over several lines": (
        "def f(\n    a: dict[str, int] = {'b': 1},  # a: c\n) -> 'x:y':\n    return a\n\nz = 1"
    ),
    "a result that is a slice over several lines": (
        "def f() -> A[:\n        2]:\n    return 1\n\nz = 1\n"
    ),
    "type parameters": "def f(a: int = (lambda: 3)()) -> None:\n    pass\nz = 1\n",
    "a docstring": 'def f():\n    """Say\n\nmore at column 0: def g():\n    """\n\nz = 1\n',
    "a string that ends a body": "def f():\n    return '''\n# no comment\n'''\nz = 1\n",
    "a string with quotes": "def f():\n    x = 'it\\'s' + \"'''\"\n    return x\nz = 1\n",
    "a comment with a quote": "def f():\n    # it's\n    return 1\nz = 1\n",
    "a comment at the margin": "def f():\n    x = 1\n# here\n    return x\n# there\nz = 1\n",
    "functions in a function": "def f():\n    def g():\n        return 1\n    return g\nz = 1\n",
    "a body beside its head": "def f(): return 1\ndef g(): pass; x = 1\nz = 1\n",
    "a decorator": "@d(\n    1,\n)\ndef f():\n    return 1\n\n\n@d\nclass C:\n    pass\n",
    "a function in a branch": "if x:\n    def f():\n        return 1\nelse:\n    y = 1\n",
    "an asynchronous one": "async def f():\n    await g()\nz = 1\n",
    "no line end at the end": "def f():\n    return 1",
    "a text that holds a function": "x = '''\ndef f():\n    return 1\n'''\nz = 1\n",
    "brackets at the margin of a class": (
        "class A:\n    def m(self):\n        return g(\n            1\n        )\n\n    x = 1\n"
    ),
    "a longer raw string": "def f():\n    return r'\\\\'\nz = 1\n",
    "a letter beyond ASCII": "def f():\n    return 'ü'\nz = 'ä'\n",
}
REFUSED = {
    "tabs": "def f():\n\treturn 1\n",
    "other line ends": "def f():\r\n    return 1\r\n",
    "a declared encoding": "# -*- coding: latin-1 -*-\ndef f():\n    return 1\n",
    "a string that does not close": "def f():\n    return '''\nz = 1\n",
    "a bracket that does not close": "def f():\n    return (1\nz = 1\n",
}


def bare(source: bytes) -> f.ModuleFacts | f.Unparsed:
    """The facts of a file as it stands: a form feed makes its outline be refused."""
    return module_facts(source + b"\n\f", "vllm")


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_outline_has_the_facts_of_the_file(name: str) -> None:
    source = FOLLOWED[name].encode()
    reduced = outline(source)
    assert reduced is not None
    ast.parse(reduced.text)
    assert module_facts(source, "vllm") == bare(source)


def test_an_outline_has_no_bodies() -> None:
    reduced = outline(b"def f():\n    x = 1\n    return x\n\nz = 1\n")
    assert reduced is not None
    assert reduced.text.split() == b"pass z = 1".split()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_certain_is_refused(name: str) -> None:
    assert outline(REFUSED[name].encode()) is None


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    return g(\n1, 2)\nz = 1\n",
        "def f():\n    x = [\n  1,\n]\nz = 1\n",
        "def f():\n    return 1 + \\\n2\nz = 1\n",
    ],
)
def test_a_line_of_a_body_at_the_margin(source: str) -> None:
    assert module_facts(source.encode(), "vllm") == bare(source.encode())


LINES = st.sampled_from(
    [
        "", "x = 1", "# it's", "y = '''", "'''", '"""', "def f(a):", "def g(): return 1",
        "class A:", "return (", ")", "    ", "z = f(", "1, 2)", "if x:", "else:", "@d", "pass",
        "x = 'a' \\",
    ]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.tuples(st.integers(0, 3), LINES), max_size=14))
def test_whatever_parses_has_the_same_facts(lines: list[tuple[int, str]]) -> None:
    source = "".join(f"{'    ' * depth}{text}\n" for depth, text in lines).encode()
    whole = bare(source)
    if isinstance(whole, f.ModuleFacts):
        assert module_facts(source, "vllm") == whole


def test_a_class_whose_file_does_not_parse_is_open() -> None:
    broken = dedent(WITH_METHOD).replace("return None", "return return", 1)
    found = row_of(coverage({INIT: broken}), "cuda")
    assert found.verdict == "?"
    assert found.reason is not None
    assert "does not parse" in found.reason


def test_a_class_whose_base_stands_in_a_file_that_does_not_parse_is_open() -> None:
    base = dedent(WITH_METHOD).replace("return None", "return return", 1)
    own = "from .base import Draft as Base\n\nclass Draft(Base):\n    pass\n"
    found = row_of(coverage({INIT: own, "vllm/models/draft/base.py": base}), "cuda")
    assert found.verdict == "?"


@pytest.mark.network
@pytest.mark.slow
def test_the_facts_of_a_whole_release(release: Callable[[str], Source]) -> None:
    tree = release("0.32.0").tree
    refused = 0
    for path in sorted(path for path in tree.files() if path.endswith(".py")):
        source = tree.read(path)
        refused += outline(source) is None
        assert module_facts(source, "vllm") == bare(source), path
    assert refused < 20
