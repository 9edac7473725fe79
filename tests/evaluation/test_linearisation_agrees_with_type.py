"""Random class hierarchies, put in order by Python's ``type()`` and by :mod:`auditor.classes`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.classes import InconsistentOrder, linearise, member_name, merge
from auditor.facts import Class, ModuleFacts
from auditor.values import Builtin, ClassValue, ModuleValue, Value

#: For each class, the indices of its bases among the classes before it; -1 is ``object``.
Hierarchy = list[list[int]]

_MODULE = ModuleValue("m", "m.py", False, ModuleFacts(()))


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    size = draw(st.integers(1, 9))
    return [
        draw(st.lists(st.integers(-1, index - 1), max_size=4, unique=True)) for index in range(size)
    ]


def _class(name: str, bases: tuple[Value, ...]) -> ClassValue:
    facts = Class(name, 1, 1, 1, (), (), (), (), (), True)
    return ClassValue(_MODULE, name, facts, bases, ())


def order_of_python(name: str, bases: tuple[type, ...]) -> tuple[type | None, list[str] | str]:
    try:
        cls = type(name, bases, {})
    except TypeError as error:
        return None, str(error)
    return cls, [member.__name__ for member in cls.__mro__[:-1]]


def our_order(cls: ClassValue) -> list[str] | str:
    try:
        return [member_name(member).rpartition(".")[2] for member in linearise(cls)]
    except InconsistentOrder as error:
        return str(error)


def _words(order: list[str] | str) -> list[str]:
    """Python 3.13 breaks the line of the message elsewhere."""
    return order.split() if isinstance(order, str) else order


@settings(max_examples=600, derandomize=True, deadline=None)
@given(hierarchies())
def test_every_class_has_the_order_or_the_error_that_python_gives_it(hierarchy: Hierarchy) -> None:
    real: dict[int, type] = {-1: object}
    ours: dict[int, Value] = {-1: Builtin("object")}
    for index, wanted in enumerate(hierarchy):
        bases = [base for base in wanted if base in real]
        name = f"C{index}"
        cls, expected = order_of_python(name, tuple(real[base] for base in bases))
        mine = _class(name, tuple(ours[base] for base in bases))
        assert _words(our_order(mine)) == _words(expected)
        if cls is not None:
            real[index], ours[index] = cls, mine


def test_merge_refuses_orders_that_contradict_each_other() -> None:
    with pytest.raises(InconsistentOrder):
        merge([["a", "b"], ["b", "a"]])


def test_object_before_another_base_is_refused_as_python_does() -> None:
    with pytest.raises(InconsistentOrder):
        linearise(_class("B", (Builtin("object"), _class("A", ()))))
