"""The one base of every error that a person is meant to read.

Each error carries its data as attributes and builds its message from them: what happened,
where, and what to do next.
"""

from __future__ import annotations


class DraftauditError(Exception):
    """Base of the errors that end a command with exit code 2.

    Args:
        what: what happened, in one clause.
        where: the path, option, or ``file:line`` it happened at; empty when there is none.
        next_step: what the reader can do about it; empty when nothing is known to help.
    """

    def __init__(self, what: str, *, where: str = "", next_step: str = "") -> None:
        self.what = what
        self.where = where
        self.next_step = next_step
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The sentence for a person: where, what happened, what to do next."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head.rstrip('.')}. {self.next_step}".rstrip() if self.next_step else head


class UsageError(DraftauditError):
    """An option or argument that does not make sense."""


class SourceError(DraftauditError):
    """A source (folder, revision, archive, index version) that cannot be opened."""


class RuleError(DraftauditError):
    """A file under ``rules/`` that is not what its schema says."""


class RegistryError(DraftauditError):
    """A registry table that is missing or is not a literal that can be read."""
