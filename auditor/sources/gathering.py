"""Members of an archive on their way to becoming a tree: names checked, root found.

Nothing is ever written to a disk. A member that cannot become a file of the tree is a
:class:`~auditor.sources.tree.SourceProblem`.
"""

from __future__ import annotations

from auditor.sources.names import normalised, printable, unsafe_reason
from auditor.sources.selection import VLLM, Limits, Selection, has_contents
from auditor.sources.tree import SourceProblem


class DamagedArchiveError(Exception):
    """The bytes are not a whole archive; the message is a clause saying what is wrong."""


class Gathering:
    """Collects the members of one archive, in the order in which they are met.

    Where the root of the tree is (``vllm-0.30.0/`` in an sdist, nothing in a wheel) is known only
    at the end, so a member is kept when it is listed with or without its first folder.
    """

    def __init__(self, limits: Limits, selection: Selection = VLLM) -> None:
        self.limits = limits
        self.selection = selection
        self.members: dict[str, bytes | None] = {}
        self._problems: list[tuple[str, str]] = []
        self._met = self._kept = self._considered = 0

    def claim(self, name: str) -> str | None:
        """The normalised ``name`` when the member is wanted; an unsafe name is noted.

        Raises:
            DamagedArchiveError: this is one member too many.
        """
        self._met += 1
        if self._met > self.limits.members:
            raise DamagedArchiveError(
                f"holds more than {self.limits.members} files, which no vLLM release does"
            )
        path = normalised(name)
        reason = unsafe_reason(name)
        if reason is None:
            return path if self._may_be_listed(path) else None
        if reason.endswith(("archive (..)", "absolute path")) or self._may_be_listed(path):
            self.leave_out(name, reason)
        return None

    def refuse(self, name: str, reason: str) -> None:
        """Leave out a member that cannot be read, when it stands where the tree would be."""
        path = self.claim(name)
        if path is not None:
            self.leave_out(path, reason)

    def wants_contents(self, path: str, size: int) -> bool:
        """Whether the bytes of a claimed member are kept; a huge one is noted and left out."""
        if not has_contents(path):
            self.add(path, None)
            return False
        if size > self.limits.member:
            self.leave_out(path, f"larger than {_mebibytes(self.limits.member)} when unpacked")
            return False
        return True

    def add(self, path: str, content: bytes | None) -> None:
        """Keep a claimed member; of two with one name the later counts, as when unpacking.

        Raises:
            DamagedArchiveError: the kept contents are too much for the memory.
        """
        if path in self.members:
            self.leave_out(path, "more than one member has this name; the last one is read")
        self._kept += len(content or b"")
        if self._kept > self.limits.kept:
            raise DamagedArchiveError(
                f"holds more than {_mebibytes(self.limits.kept)} of source, far more than vLLM has"
            )
        self.members[path] = content

    def leave_out(self, name: str, reason: str) -> None:
        """Note that ``name`` is not part of the tree as it stands, and why."""
        self._problems.append((printable(name), reason))

    def consider(self, size: int) -> None:
        """Count ``size`` decompressed bytes.

        Raises:
            DamagedArchiveError: more than the limit in total.
        """
        self._considered += size
        if self._considered > self.limits.total:
            raise DamagedArchiveError(
                f"unpacks to more than {_mebibytes(self.limits.total)}, which no vLLM release does"
            )

    def root(self) -> str | None:
        """The prefix of the tree (``""``, ``"vllm-0.30.0/"``), or None without a package.

        Where there are several, those that do not count are noted.
        """
        roots = self.selection.roots(self.members)
        for other in roots[1:]:
            if not other.startswith(roots[0]):
                why = f"only the package in {roots[0]} is read"
                self.leave_out(other + self.selection.marker, why)
        return roots[0] if roots else None

    def tree(self, root: str) -> dict[str, bytes | None]:
        """The files of the tree below ``root``, by path."""
        return {
            path.removeprefix(root): content
            for path, content in self.members.items()
            if path.startswith(root) and self.selection.lists(path.removeprefix(root))
        }

    def problems(self, root: str) -> tuple[SourceProblem, ...]:
        """What was left out, each once, in order of path; paths are relative to ``root``."""
        found = {SourceProblem(name.removeprefix(root), why) for name, why in self._problems}
        return tuple(sorted(found))

    def _may_be_listed(self, path: str) -> bool:
        lists = self.selection.lists
        return lists(path) or lists(path.partition("/")[2])


def _mebibytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} bytes"
