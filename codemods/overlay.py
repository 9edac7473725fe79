"""A tree with some of its files changed, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from auditor.sources.tree import Source, Tree, content_key, key_of, stamp


@dataclass(frozen=True, slots=True)
class Overlay:
    """``base`` with other bytes for the files in ``changed``."""

    base: Tree
    changed: Mapping[str, bytes]

    def files(self) -> frozenset[str]:
        """See :meth:`auditor.sources.tree.Tree.files`."""
        return self.base.files() | self.changed.keys()

    def read(self, path: str) -> bytes:
        """See :meth:`auditor.sources.tree.Tree.read`."""
        content = self.changed.get(path)
        return self.base.read(path) if content is None else content

    def content_key(self, path: str) -> bytes:
        """See :func:`auditor.sources.tree.content_key`."""
        content = self.changed.get(path)
        return content_key(self.base, path) if content is None else key_of(content)

    def stamp(self, path: str) -> bytes | None:
        """See :func:`auditor.sources.tree.stamp`; what is in memory has none."""
        return None if path in self.changed else stamp(self.base, path)


def overlaid(source: Source, changed: Mapping[str, bytes]) -> Source:
    """The source with some of its files changed."""
    return replace(source, tree=Overlay(source.tree, changed))
