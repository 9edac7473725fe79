"""A toy tensor algebra: the same operations for Python to run and for terms to be read in.

A tensor is two numbers; modules and functions are hashes of their name and input, so that two
different computations give different numbers. Views share their numbers, as PyTorch's do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Item,
    Module,
    Operation,
    Param,
    Part,
    Self,
    Stored,
    Term,
)

_PRIME = 1_000_003


class Tensor:
    """Two numbers modulo a prime; ``data`` may be shared with a view."""

    def __init__(self, data: list[int]) -> None:
        self.data = data

    def __add__(self, other: Any) -> Tensor:
        theirs = other.data if isinstance(other, Tensor) else [other] * len(self.data)
        return Tensor([(a + b) % _PRIME for a, b in zip(self.data, theirs, strict=True)])

    def __mul__(self, other: int) -> Tensor:
        return Tensor([a * other % _PRIME for a in self.data])

    def __iadd__(self, other: Any) -> Tensor:
        self.data[:] = (self + other).data
        return self

    def __setitem__(self, index: int, value: int) -> None:
        self.data[index] = value

    def view(self, _: int) -> Tensor:
        """The same numbers."""
        return Tensor(self.data)

    def clone(self) -> Tensor:
        """A copy."""
        return Tensor(list(self.data))

    def fill_(self, value: int) -> Tensor:
        """Set every number."""
        self.data[:] = [value] * len(self.data)
        return self

    def add_(self, other: Any) -> Tensor:
        """Add in place."""
        self += other
        return self


def mixed(name: str, *inputs: Any) -> Tensor:
    """What a module or function of this name makes of its inputs."""
    seed = sum(ord(letter) * 31**place for place, letter in enumerate(name))
    for number, one in enumerate(inputs, 1):
        for value in one.data if isinstance(one, Tensor) else [hash(one)]:
            seed = (seed * 131 + value * number + 7) % _PRIME
    return Tensor([seed, seed * 17 % _PRIME])


class Named:
    """A module: a name, parts, and a weight; called, it mixes its input."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.weight = mixed(f"{name}.weight")

    def __call__(self, hidden: Tensor) -> Tensor:
        return mixed(self.name, hidden, self.weight)


class Same:
    """A module that gives its input back."""

    def __init__(self) -> None:
        self.weight = mixed("same.weight")

    def __call__(self, hidden: Tensor) -> Tensor:
        return hidden


class Layer:
    """A layer with a norm of its own."""

    def __init__(self, number: int) -> None:
        self.norm = Named(f"layer{number}")


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: a % b,
    "==": lambda a, b: a == b,
    "is": lambda a, b: a is b,
    "tuple": lambda *items: items,
}


class Reader:
    """Reads terms in the toy algebra, for one model and its arguments; nothing is changed."""

    def __init__(self, model: object, arguments: dict[str, Any]) -> None:
        self._model = model
        self._arguments = arguments

    def read(self, term: Term) -> Any:
        """The value of a term."""
        match term:
            case Self():
                return self._model
            case Param(name=name):
                return self._arguments[name]
            case Constant(value=value):
                return value
            case Part(owner=owner, name=name):
                return getattr(self.read(owner), name)
            case Item(owner=owner, index=index):
                return self.read(owner)[self.read(index)]
            case Operation(name=name, operands=operands):
                return _OPERATIONS[name](*map(self.read, operands))
            case Module(module=module, arguments=arguments):
                return self.read(module)(*map(self.read, arguments))
            case Apply(function=Global(name="str"), arguments=(inner,)):
                return str(self.read(inner))
            case Apply(function=Global(name=name), arguments=arguments):
                return mixed(name.rpartition(".")[2], *map(self.read, arguments))
            case Apply(function=Part(owner=owner, name=name), arguments=arguments):
                return getattr(self._copy(owner), name)(*map(self.read, arguments))
            case Stored(base=base, index=index, value=value):
                copy = self._copy(base)
                copy[self.read(index)] = self.read(value)
                return copy
            case Changed(base=base, method=method, arguments=arguments):
                return getattr(self._copy(base), method)(*map(self.read, arguments))
        raise NotImplementedError(term)

    def _copy(self, term: Term) -> Any:
        value = self.read(term)
        return value.clone() if isinstance(value, Tensor) else value
