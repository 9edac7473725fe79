"""What is read ahead: what a module may import when it runs, and nothing that it cannot."""

from __future__ import annotations

import pytest

from auditor.prefetch import Prefetch
from auditor.program import Files, Job

FILES = {
    "pkg/__init__.py": "",
    "pkg/model.py": "",
    "pkg/layers.py": "Layer = None\n",
    "pkg/annotations.py": "Annotation = None\n",
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


def read_ahead(model: str, processes: int = 1, begun: tuple[str, ...] = ()) -> set[str]:
    tree = Recorded({**FILES, "pkg/model.py": model})
    with Prefetch(Files(tree), MODULES, processes) as ahead:
        if begun:
            ahead.begin(begun)
        ahead.read(["pkg.model"])
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


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("begun", [("pkg.model",), ("pkg.layers",), ("pkg.annotations",)])
def test_what_was_begun_is_read_once_and_the_rest_after_it(
    processes: int, begun: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    keep = Files._keep

    def kept(self: Files, kind: str, keys: object, jobs: list[Job], blobs: list[bytes]) -> None:
        parsed.extend(path for _, kind_, path, _ in jobs if kind_ == "facts")
        keep(self, kind, keys, jobs, blobs)  # type: ignore[arg-type]

    monkeypatch.setattr(Files, "_keep", kept)
    model = "from pkg import layers\n"
    extra = {f"pkg/{name.rpartition('.')[2]}.py" for name in begun}
    wanted = {"pkg/__init__.py", "pkg/model.py", "pkg/layers.py"} | extra
    assert read_ahead(model, processes, begun) == wanted
    assert sorted(parsed) == sorted(wanted)
