"""Which names facts leave out, since they surely exist, and what they hold of constants."""

from __future__ import annotations

import pytest

from auditor import facts as f
from auditor.factcache import decode, encode
from auditor.syntax.function import function_facts
from auditor.syntax.module import module_facts

#: A module, and the names that its last statement, an annotation, may find missing.
READ = {
    "nothing binds it": ("y: x", ("x",)),
    "a builtin": ("y: int", ()),
    "an attribute of a builtin": ("y: int.x", ("int.x",)),
    "an assignment": ("x = 1\ny: x", ()),
    "several targets": ("a, [b, *c] = d\ny: (a, b, c)", ()),
    "an attribute of a name of the tree": ("from root import x\ny: x.z", ("x.z",)),
    "an attribute of a foreign name": ("from other import x\ny: x.z", ()),
    "a module of another package": ("import other.a\ny: other.a.x", ()),
    "a relative import": ("from .other import x\ny: x.z", ("x.z",)),
    "a foreign name bound anew": ("from other import x\nx = 1\ny: x.z", ("x.z",)),
    "a name that is deleted": ("x = 1\ndel x\ny: x", ("x",)),
    "a foreign name deleted and bound": ("import x\ndel x\nx = 1\ny: x.z", ("x.z",)),
    "a branch": ("if a:\n    x = 1\ny: x", ("x",)),
    "both branches": ("if a:\n    x = 1\nelse:\n    x = 2\ny: x", ("x",)),
    "a branch that hides a foreign name": ("import x\nif a:\n    x = 1\ny: x.z", ("x.z",)),
    "a branch with a with": (
        "import x\nif a:\n    with b as x:\n        pass\ny: x.z",
        ("x.z",),
    ),
    "a foreign name that a with binds": ("import x\nwith b as x:\n    pass\ny: x.z", ("x.z",)),
    "inside a with that binds it": ("import x\nwith b as x:\n    y: x.z", ("x.z",)),
    "inside a loop that binds it": ("import x\nfor x in b:\n    y: x.z", ("x.z",)),
    "inside a handler that binds it": (
        "import x\ntry:\n    pass\nexcept b as x:\n    y: x.z",
        ("x.z",),
    ),
    "inside the branch that binds it": ("if a:\n    x = 1\n    y: x", ()),
    "a loop": ("x = 1\nfor x in a:\n    pass\ny: x", ("x",)),
    "a handler": ("e = 1\ntry:\n    a()\nexcept A as e:\n    pass\ny: e", ("e",)),
    "a pattern": ("x = 1\nmatch a:\n    case x:\n        pass\ny: x", ("x",)),
    "inside a class, from outside": ("x = 1\nclass A:\n    y: x", ()),
    "inside a class, from before": ("class A:\n    x = 1\n    y: x", ()),
    "outside the class that binds it": ("class A:\n    x = 1\ny: x", ("x",)),
    "after a class that binds it anew": ("import x\nclass A:\n    x = 1\ny: x.z", ()),
    "after a class that deletes it": ("x = 1\nclass A:\n    del x\ny: x", ()),
    "a class": ("class A:\n    pass\ny: A", ()),
    "a function": ("def g():\n    pass\ny: g", ()),
    "a lambda's body": ("y: (lambda: x)", ()),
    "a lambda's default": ("y: (lambda a=x: a)", ("x",)),
    "the iterable of a comprehension": ("y: [x for x in z]", ("z",)),
}


def _last(body: tuple[f.Stmt, ...]) -> f.Stmt | None:
    match body:
        case (*_, (f.If() | f.Class() | f.With() | f.Loop()) as outer) if outer.body:
            return _last(outer.body)
        case (*_, f.Try(handlers=(handler,))):
            return _last(handler.body)
        case (*_, last):
            return last
        case _:
            return None


@pytest.mark.parametrize(("source", "missing"), READ.values(), ids=READ)
def test_names_that_surely_exist_are_left_out(source: str, missing: tuple[str, ...]) -> None:
    facts = module_facts(source.encode(), "root")
    assert isinstance(facts, f.ModuleFacts)
    last = _last(facts.body)
    assert (last.names if isinstance(last, f.Uses) else ()) == missing


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'caf\xe9'", f.Const("caf\xe9")),
        ("'\\ud800'", f.Unknown("'\\ud800'", ())),
        ("True", f.Const(True)),
        ("None", f.Const(None)),
        ("-1.5", f.Const(-1.5)),
        (f"{2**64 - 1}", f.Const(2**64 - 1)),
        (f"{2**64}", f.Unknown(f"{2**64}", ())),
        (f"-{2**63}", f.Const(-(2**63))),
        (f"-{2**63 + 1}", f.Unary("-", f.Const(2**63 + 1))),
        (f"-{2**64}", f.Unary("-", f.Unknown(f"{2**64}", ()))),
        ("1j", f.Unknown("1j", ())),
        ("...", f.Unknown("...", ())),
    ],
)
def test_a_constant_can_be_kept_or_is_unknown(text: str, value: f.Expr) -> None:
    facts = module_facts(f"x = {text}\n".encode(), "root")
    assert facts == f.ModuleFacts((f.Assign((f.Name("x"),), value, 1),))
    assert decode(encode(facts)) == facts


def test_the_parameters_of_a_function() -> None:
    source = b"def g(a, /, b=1, *c, d, e=2, **h):\n    yield a\n"
    facts = function_facts(source.splitlines(), 1, 2, "g")
    assert isinstance(facts, f.FunctionFacts)
    assert facts.params == ("a", "b", "d", "e")
    assert facts.defaults == (("b", f.Const(1)), ("e", f.Const(2)))
    assert (facts.vararg, facts.kwarg, facts.posonly, facts.kwonly) == ("c", "h", 1, 2)
    assert facts.generator


def test_a_yield_of_a_function_inside_is_not_of_the_function() -> None:
    source = b"def g():\n    def h():\n        yield 1\n    return h\n"
    facts = function_facts(source.splitlines(), 1, 4, "g")
    assert isinstance(facts, f.FunctionFacts)
    assert not facts.generator


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("x = 1\nreturn x\n", "'return' outside function", 2),
        ("if x:\n    return\n", "'return' outside function", 2),
        ("class A:\n    return 1\n", "'return' outside function", 2),
        ("break\n", "'break' outside loop", 1),
        ("for x in y:\n    pass\nelse:\n    continue\n", "'continue' not properly in loop", 4),
        ("while x:\n    class A:\n        break\n", "'break' outside loop", 3),
    ],
)
def test_what_parses_and_does_not_compile_is_no_module(text: str, reason: str, line: int) -> None:
    with pytest.raises(SyntaxError, match=reason):
        compile(text, "m.py", "exec")
    assert module_facts(text.encode(), "root") == f.Unparsed(f"does not compile: {reason}", line)


def test_what_stands_in_a_loop_or_a_function_compiles() -> None:
    text = (
        "for x in y:\n    if x:\n        continue\n    while z:\n        break\n    break\n"
        "def g():\n    return 1\n"
    )
    compile(text, "m.py", "exec")
    assert isinstance(module_facts(text.encode(), "root"), f.ModuleFacts)
