"""The details behind the cells of the HTML report, as JSON in which nothing is said twice.

Most steps of evidence are the same on all platforms and in many architectures, and much of the
rest is the same in several versions. So every value is kept once, in a list, and named by its
position there (``nodes``); what it is made of stands before it:

* a string, a number, true, false or null is itself;
* a list is ``[0, position, …]``;
* an object is ``[n, position, …]``: its keys are ``shapes[n - 1]``, in this order.

The last node is the document. ``html_page/page.js`` reads it in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from auditor.coverage import VERDICTS, Coverage, Head, Row
from auditor.reports import rows as view
from auditor.reports.html_changes import TITLES, Change
from auditor.reports.json import escaped
from auditor.reports.text import literal


class Pool:
    """Values by position, each once."""

    def __init__(self) -> None:
        self._nodes: list[object] = []
        self._shapes: list[list[str]] = []
        self._known: dict[object, int] = {}
        self._known_shapes: dict[tuple[str, ...], int] = {}

    def put(self, value: object) -> int:
        """The position of ``value``; strings are made safe to show (:func:`literal`).

        Keys of mappings are taken to be names of fields: never anything that a tree chose.
        """
        if isinstance(value, dict):
            shape = self._shape(tuple(value))
            return self._node((shape, *map(self.put, value.values())))
        if isinstance(value, list | tuple):
            return self._node((0, *map(self.put, value)))
        return self._scalar(literal(value) if isinstance(value, str) else value)

    def document(self) -> bytes:
        """All of it, as JSON."""
        return msgspec.json.encode({"shapes": self._shapes, "nodes": self._nodes})

    def _node(self, node: tuple[int, ...]) -> int:
        return self._position(node, list(node))

    def _scalar(self, value: object) -> int:
        # True equals 1 and hashes alike, so the type is part of the key.
        return self._position((type(value), value), value)

    def _position(self, key: object, node: object) -> int:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self._nodes)
            self._nodes.append(node)
        return found

    def _shape(self, keys: tuple[str, ...]) -> int:
        found = self._known_shapes.get(keys)
        if found is None:
            self._shapes.append(list(keys))
            found = self._known_shapes[keys] = len(self._shapes)
        return found


def script_text(
    names: Sequence[str],
    coverages: Sequence[Coverage],
    pairs: Mapping[tuple[int, int], Sequence[Change]],
    shown: frozenset[str],
) -> str:
    """The JSON for a ``<script type="application/json">``.

    Nothing in it ends the element or opens a comment, whatever the audited tree is called: ``<``,
    ``>`` and ``&`` are written as escapes (HTML, 4.12.1.3).

    Args:
        names: what each version is called on the page.
        coverages: the documents, in the same order.
        pairs: what changed between two of them, by position.
        shown: the architectures that the page has.
    """
    pool = Pool()
    versions = [
        _version(name, coverage, shown) for name, coverage in zip(names, coverages, strict=True)
    ]
    pool.put(
        {
            "verdicts": VERDICTS,
            "titles": TITLES,
            "versions": versions,
            "changes": [
                {"from": a, "to": b, "changes": msgspec.to_builtins(found)}
                for (a, b), found in pairs.items()
            ],
        }
    )
    text = escaped(pool.document())
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _version(name: str, coverage: Coverage, shown: frozenset[str]) -> dict[str, Any]:
    heads = {(head.class_, p): head for head in coverage.heads for p in head.platforms}
    rows = [
        {
            "architecture": architecture,
            "cells": [
                {
                    "platform": row.platform,
                    **_cell(row, heads.get((f"{row.module}.{row.class_}", row.platform))),
                }
                for row in group
            ],
        }
        for architecture, group in view.by_architecture(coverage)
        if architecture in shown
    ]
    return {
        "name": name,
        "label": coverage.source.label,
        "capability": coverage.capability,
        "platforms": coverage.platforms,
        "rows": rows,
        "findings": msgspec.to_builtins(view.by_severity(coverage)),
        "callers": msgspec.to_builtins(coverage.callers),
        "undecided": [
            msgspec.to_builtins(item) for item in coverage.undecided if item.architectures
        ],
    }


def _cell(row: Row, head: Head | None) -> dict[str, Any]:
    """A row as the document has it, but for its place in the table, and with its head."""
    fields: dict[str, Any] = msgspec.to_builtins(view.anywhere(row))
    for name in ("architecture", "platform", "findings", "shape", "equivalence"):
        del fields[name]
    if head is None:
        return {**fields, "head": None}
    known: dict[str, Any] = msgspec.to_builtins(head)
    del known["class"], known["platforms"]
    return {**fields, "head": known}
