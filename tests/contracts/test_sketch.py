"""A definition is parsed alone, at its own lines, and is the one that Python would see."""

from __future__ import annotations

import ast

import pytest

from auditor.contracts.sketch import Sketch
from auditor.facts import Unparsed

SOURCE = '''"""A module.

class NotOne: in its docstring
"""
import os
from a.b import (
    c,
    d as e,
)
if os.name:
    from only import here

LIMIT: int = 3
NAMES = {
    "one",
}

@mark(
    "x",
)
def function(
    a,
    b=1,
) -> int:
    # left
# and further left
    return a


class First(
    Base,
    Other,
):
    """Has a docstring.

    def not_a_method(): in it
    """

    size = 1

    @property
    def name(self):
        return "n"

    def text(self):
        return """
left
    def neither():
"""

    async def later(self): ...


class Empty: ...
'''


def _sketch(source: str = SOURCE) -> Sketch:
    return Sketch("m.py", source.encode())


def _same(found: ast.AST | None, wanted: ast.AST) -> bool:
    return found is not None and ast.dump(found, include_attributes=True) == ast.dump(
        wanted, include_attributes=True
    )


def test_every_definition_is_the_one_of_the_whole_module() -> None:
    sketch, tree = _sketch(), ast.parse(SOURCE)
    whole = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name, node in whole.items():
        assert _same(sketch.function(name), node)
    (first,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "First"]
    for member in first.body:
        if isinstance(member, ast.FunctionDef):
            assert _same(sketch.method("First", member.name), member), member.name


def test_headers_values_and_imports() -> None:
    sketch = _sketch()
    header = sketch.header("First")
    assert header is not None
    assert [ast.unparse(base) for base in header.bases] == ["Base", "Other"]
    assert ast.unparse(sketch.value("LIMIT") or ast.Pass()) == "3"
    assert ast.unparse(sketch.value("NAMES") or ast.Pass()) == "{'one'}"
    assert sketch.value("First") is None
    assert sketch.value("function") is None
    assert [ast.unparse(node) for node in sketch.imports] == [
        "import os",
        "from a.b import c, d as e",
    ]
    assert sketch.header("Empty") is not None
    assert sketch.members("Empty") == {}


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        ("LIMIT", ("", "")),
        ("return a", ("", "function")),
        ('return "n"', ("First", "name")),
        ("size = 1", ("First", "size")),
    ],
)
def test_a_line_is_held_by_what_is_around_it(text: str, holder: tuple[str, str]) -> None:
    (line,) = [n for n, row in enumerate(SOURCE.splitlines(), 1) if text in row]
    assert _sketch().holder(line) == holder


def test_what_cannot_be_read_defines_nothing() -> None:
    assert Sketch("m.py", Unparsed("no", 0)).top == {}
    broken = _sketch("def f(:\n    pass\n")
    assert broken.function("f") is None
    assert _sketch("").top == {}
