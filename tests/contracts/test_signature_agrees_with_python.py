"""A call fits a method exactly when Python binds it, and the error has Python's words."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.contracts.drafters import Call, calls_in
from auditor.contracts.signature import misfit, open_binding, signature, takes

NAMES = ("a", "b", "c", "d")


def _method(parameters: str, decorator: str = "") -> ast.FunctionDef:
    node = ast.parse(f"{decorator}def m({parameters}): pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _call(arguments: str) -> Call:
    tree = ast.parse(f"def f(self):\n    self.model.m({arguments})")
    (call,) = calls_in(tree, "caller.py", ("m",))
    return call


def _python(parameters: str, arguments: str, decorator: str = "") -> str | None:
    """What Python raises."""
    names: dict[str, object] = {}
    exec(f"class K:\n    {decorator}\n    def m({parameters}): pass\n", names)
    try:
        exec(f"K().m({arguments})", {**names, "x": 0, "xs": (), "kw": {}})
    except TypeError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Signature:
    """Parameters in the order in which Python wants them."""

    only: int
    plain: int
    defaults: int
    vararg: bool
    kwonly: tuple[tuple[str, bool], ...]
    kwarg: bool

    def __str__(self) -> str:
        names = ["self", *NAMES[: self.only + self.plain]]
        late = len(names) - self.defaults
        parts = [f"{n}=0" if i >= late else n for i, n in enumerate(names)]
        if self.only:
            parts.insert(1 + self.only, "/")
        if self.vararg:
            parts.append("*rest")
        elif self.kwonly:
            parts.append("*")
        parts += [f"{name}=0" if has else name for name, has in self.kwonly]
        return ", ".join([*parts, "**more"] if self.kwarg else parts)


@st.composite
def signatures(draw: st.DrawFn) -> Signature:
    """Any signature of a method, ``self`` first and without a default."""
    only, plain = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    keyword = st.sampled_from(("k", "l"))
    kwonly = draw(st.lists(st.tuples(keyword, st.booleans()), max_size=2, unique_by=lambda p: p[0]))
    defaults = draw(st.integers(0, only + plain))
    return Signature(only, plain, defaults, draw(st.booleans()), tuple(kwonly), draw(st.booleans()))


@st.composite
def arguments(draw: st.DrawFn) -> str:
    """Arguments without unpacking."""
    keywords = draw(st.lists(st.sampled_from((*NAMES, "k", "l", "z")), max_size=3, unique=True))
    given_ = ["x"] * draw(st.integers(0, 4)) + [f"{name}=x" for name in keywords]
    return ", ".join(given_)


@given(signatures(), arguments())
def test_a_call_fits_as_python_binds_it(made: Signature, call: str) -> None:
    assert misfit(_call(call), _method(str(made)), "K.m") == _python(str(made), call)


@pytest.mark.parametrize(
    ("parameters", "decorator", "call"),
    [
        ("a", "@staticmethod", "x"),
        ("a", "@staticmethod", "x, x"),
        ("", "@staticmethod", ""),
        ("cls, a", "@classmethod", "x"),
        ("cls, a", "@classmethod", ""),
    ],
)
def test_what_is_bound_depends_on_the_kind_of_method(
    parameters: str, decorator: str, call: str
) -> None:
    found = misfit(_call(call), _method(parameters, f"{decorator}\n"), "K.m")
    assert found == _python(parameters, call, decorator)


UNPACKED = [
    ("self, a", "*xs", True),
    ("self, a", "**kw", True),
    ("self, a", "x, **kw", True),
    ("self, a, b=0", "x", False),
    ("self, *rest, **more", "x, b=x", False),
]


@pytest.mark.parametrize(("parameters", "call", "is_open"), UNPACKED)
def test_an_unpacked_argument_leaves_it_open(parameters: str, call: str, is_open: bool) -> None:
    found = open_binding(_call(call), _method(parameters))
    assert (found is not None) is is_open
    assert misfit(_call(call), _method(parameters)) is None


@pytest.mark.parametrize(
    ("parameters", "call", "says"),
    [
        ("self", "x, *xs", "m() takes 1 positional argument but 2 were given"),
        ("self, a", "z=x, **kw", "m() got an unexpected keyword argument 'z'"),
        ("self, *, k", "*xs", "m() missing 1 required keyword-only argument: 'k'"),
    ],
)
def test_unpacking_excuses_no_more_than_it_can_give(parameters: str, call: str, says: str) -> None:
    assert misfit(_call(call), _method(parameters)) == says
    assert open_binding(_call(call), _method(parameters)) is None


def test_the_signature_is_told_as_it_is_written() -> None:
    assert (
        signature(_method("self, a: int, /, b=1, *rest, k, l=2, **more"))
        == "m(self, a, /, b=1, *rest, k, l=2, **more)"
    )
    assert signature(_method("self, *, k")) == "m(self, *, k)"
    assert takes(_method("self, *, k"), "k")
    assert takes(_method("self, **more"), "k")
    assert not takes(_method("self, k, /"), "k")
