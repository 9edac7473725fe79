"""What is read ahead: what a module may import when it runs, and nothing that it cannot."""

from __future__ import annotations

import pytest

from auditor.prefetch import prefetch
from auditor.program import Files

FILES = {
    "pkg/__init__.py": "",
    "pkg/model.py": "",
    "pkg/layers.py": "",
    "pkg/annotations.py": "",
}
MODULES = {
    "pkg": ("pkg/__init__.py", True),
    "pkg.model": ("pkg/model.py", False),
    "pkg.layers": ("pkg/layers.py", False),
    "pkg.annotations": ("pkg/annotations.py", False),
}


class Recorded:
    """A tree that remembers which of its files were read."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self.asked: set[str] = set()

    def files(self) -> frozenset[str]:
        return frozenset(self._files)

    def read(self, path: str) -> bytes:
        self.asked.add(path)
        return self._files[path].encode()


def read_ahead(model: str) -> set[str]:
    tree = Recorded({**FILES, "pkg/model.py": model})
    prefetch(Files(tree), MODULES, ["pkg.model"], 1)
    return tree.asked


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_a_block_for_type_checkers_is_left_out(test: str) -> None:
    model = (
        "import typing\nfrom typing import TYPE_CHECKING\n"
        f"if {test}:\n    import pkg.annotations\nelse:\n    import pkg.layers\n"
    )

    assert read_ahead(model) == {"pkg/__init__.py", "pkg/model.py", "pkg/layers.py"}


def test_any_other_branch_may_run() -> None:
    model = "import sys\nif sys.platform == 'win32':\n    import pkg.annotations\n"

    assert "pkg/annotations.py" in read_ahead(model)
