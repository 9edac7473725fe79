"""Answers about nodes of facts, each found once: for all platforms, and however often asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Node = TypeVar("_Node")
_Answer = TypeVar("_Answer")


class Once(Generic[_Node, _Answer]):
    """What ``read`` says of nodes; it may rest on the node alone.

    Nodes never change, and are told apart as objects: whoever compares them, or takes a hash, has
    to read them in full. An entry holds its node, so that no other object takes its identity.
    """

    __slots__ = ("_known", "_read")

    def __init__(self, read: Callable[[_Node], _Answer]) -> None:
        self._read = read
        self._known: dict[int, tuple[_Node, _Answer]] = {}

    def of(self, node: _Node) -> _Answer:
        """The answer about a node."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = (node, self._read(node))
        return known[1]
