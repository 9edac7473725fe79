"""Functions run by the interpreter and by Python: the same value, or the same exception."""

from __future__ import annotations

import copy
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.checkpoints.conventions import checkpoint_rule
from auditor.checkpoints.engine import guarded, new_run
from auditor.checkpoints.library import NoLibrary
from auditor.checkpoints.values import CannotFollow, Function, Raised
from auditor.contracts.names import Names, Ref
from auditor.modules import locate_modules
from auditor.program import Files
from auditor.sources.tree import MemoryTree

FUNCTIONS = """
from collections.abc import Mapping
from copy import deepcopy

TABLE = {"a": 1, "b": [1, 2]}
KINDS = frozenset({"a", "b"})

def membership(x):
    return [x in ("ab"), x in ("ab",), x in {"ab": 1}, x not in [x]]

def chain(x):
    return 0 < x <= 3 != x

def early(x):
    for item in x:
        if item:
            return item
        else:
            continue
    else:
        return "none"

def loops(x):
    found = []
    i = 0
    while True:
        i += 1
        if i > 5:
            break
        if i == x:
            continue
        found.append(i)
    return found

def caught(x):
    try:
        return x["key"] + 1
    except (KeyError, IndexError) as error:
        return [type(error).__name__, str(error)]
    except TypeError:
        return "type"
    finally:
        TABLE.get("a")

def raised(x):
    try:
        raise ValueError(f"got {x!r} of {x}")
    except ValueError as error:
        if x:
            raise
        raise KeyError(x) from error

def asserted(x):
    assert x, f"not {x}"
    return True

def walrus(x):
    if (first := x[0]) and (second := first * 2):
        return first, second
    return first

def comprehensions(x):
    return [[a for a in x if a], {a: b for a, b in zip(x, x)}, {str(a) for a in x} == set(),
            any(a for a in x), all(a == a for a in x), sorted(x, key=lambda a: str(a))]

def unpacked(x):
    first, (second, *_) = x, x
    return first, second

def pairs(x):
    first, second = x
    return second, first

def merged(x):
    made = {"a": 0, **x, "z": 1} | x
    made.update(x)
    made.setdefault("q", []).append(1)
    return made, [*x, *x], made.pop("z")

def formatted(x):
    return f"{x:>5}|{x!s:<4}|{x!r}|" + "%s" % (x,) + "{}".format(x)

def defaults(x, y=TABLE["a"], *rest, z=2, **more):
    return x, y, rest, z, more

def called(x):
    return defaults(x), defaults(*x), defaults(1, **x), defaults(1, 2, 3, z=x, w=4)

def nested(x):
    def inner(y):
        return [x, y]
    return [inner(1), (lambda a, b=x: (a, b))(2)]

def unbound(x):
    if x:
        name = 1
    return name

def missing(x):
    return not_a_name

def attributes(x):
    return [getattr(x, "real", "no"), hasattr(x, "items"), x.upper()]

def copies(x):
    y = deepcopy(x)
    y.append(1)
    return x, y

def tests(x):
    return [bool(x), not x, x and 1, x or 2, x is None, isinstance(x, (int, list)),
            isinstance(x, Mapping), 1 if x else 0]

def numbers(x):
    return [x + 1, x - 1, x * 2, x / 2, x // 2, x % 3, -x, abs(x), min(x, 2), round(x), int(x)]

def sliced(x):
    return [x[0], x[-1], x[1:], x[::-1], len(x), list(reversed(x)), x * 2, x + x]

def sets(x):
    return [KINDS & set(x) == KINDS, KINDS.intersection(x or []) == set(), sorted(KINDS | {"c"})]

def texts(x):
    return [x.lower(), x.startswith("a"), x.removeprefix("a"), x.split("b"), "-".join([x, x]),
            x.replace("a", "c"), x.isidentifier()]

def deleted(x):
    del x[0]
    x[0] += 1
    return x
"""
NAMES = [
    line.split("(")[0].removeprefix("def ")
    for line in FUNCTIONS.splitlines()
    if line.startswith("def ") and "defaults" not in line
]
PYTHON: dict[str, Any] = {}
exec(dedent(FUNCTIONS), PYTHON)

_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 6), st.sampled_from(["", "a", "ab", "key", "x"]),
    st.floats(-2, 4, allow_nan=False),
)  # fmt: skip
_values = st.one_of(
    _scalars,
    st.lists(_scalars, max_size=3),
    st.dictionaries(st.sampled_from(["a", "key", "y", "1"]), _scalars, max_size=3),
    st.lists(st.lists(_scalars, max_size=2), max_size=2),
)


def _names(code: str) -> Names:
    tree = MemoryTree({"vllm/__init__.py": b"", "vllm/code.py": dedent(code).encode()})
    return Names(Files(tree), locate_modules(tree.files(), {"vllm"})[0])


FOLLOWED = _names(FUNCTIONS)


def _ours(names: Names, name: str, value: Any) -> tuple[str, Any]:
    run = new_run(names, NoLibrary())
    function = run.named(Ref("vllm.code", name))
    assert isinstance(function, Function)
    try:
        return "made", guarded(lambda: run.call_function(function, (value,), {}))
    except Raised as raised:
        return raised.type, raised.message


def _python(name: str, value: Any) -> tuple[str, Any]:
    try:
        return "made", PYTHON[name](value)
    except Exception as error:  # noqa: BLE001 - whatever Python raises is the answer
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(value=_values)
def test_a_function_gives_what_python_gives(name: str, value: Any) -> None:
    ours, theirs = _ours(FOLLOWED, name, copy.deepcopy(value)), _python(name, copy.deepcopy(value))
    if name in ("called", "merged") and "argument" in str(theirs[1]):
        # What a wrong call says is worded otherwise.
        assert ours[0] == theirs[0]
    else:
        assert repr(ours) == repr(theirs)


@pytest.mark.parametrize(
    ("body", "value", "reason"),
    [
        ("return ['x'] * x", 10**9, "more than"),
        ("return 'x'.ljust(x)", 10**9, "more than"),
        ("return f'{x:1000000000}'", 1, "large width"),
        ("return 2 ** x", 10**9, "bits"),
        ("return list(range(x))", 10**12, "more than"),
        ("while True: x", 1, "too many steps"),
        ("return f(x)", 1, "nested too deeply"),
        ("return open(x)", "/etc/hostname", "`open`"),
        ("return eval(x)", "1", "`eval`"),
        ("return __import__(x)", "os", "`__import__`"),
        ("return x.__class__.__mro__", 1, "`__class__`"),
        ("import os; return os.system(x) == 0", "true", "os.system"),
        ("import os; os.environ.update(x)", {}, "os.environ.update"),
        ("return '{0.__class__}'.format(f)", 1, "text of an object"),
        ("yield x", 1, "generator function"),
        ("with x: pass", 1, "with statement"),
        ("global g; g = x", 1, "bound by a function"),
        ("return y if (y := unknown()) else 1", 1, "`nowhere.unknown`"),
    ],
)
def test_what_is_not_followed_is_refused_with_its_line(
    body: str, value: object, reason: str
) -> None:
    code = f"from nowhere import unknown\n\ndef f(x):\n    {body}\n"
    with pytest.raises(CannotFollow) as refused:
        _ours(_names(code), "f", value)
    assert reason in refused.value.reason
    assert refused.value.where is not None
    assert refused.value.where.path == "vllm/code.py"


def test_containers_of_a_module_are_filled_by_its_decorators() -> None:
    code = """
        TABLE = {}

        def register(name):
            def decorate(function):
                TABLE[name] = function
                return function
            return decorate

        @register("double")
        def double(x):
            return x * 2

        def f(x):
            return TABLE["double"](x), sorted(TABLE)
        """
    assert _ours(_names(code), "f", 2) == ("made", (4, ["double"]))


def test_a_container_that_the_module_changes_later_is_not_followed() -> None:
    code = "TABLE = {}\nTABLE['a'] = 1\n\ndef f(x):\n    return TABLE['a']\n"
    with pytest.raises(CannotFollow, match="changed where it is loaded"):
        _ours(_names(code), "f", 1)


def test_the_base_of_configurations_is_described_once() -> None:
    rule = checkpoint_rule().base
    names = [*rule.none, *rule.defaults, *rule.popped, *rule.computed]
    assert len(names) == len(set(names))
