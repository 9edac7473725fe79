"""Which files may define a class and its bases, read off statements."""

from __future__ import annotations

import pytest

from auditor.bases import Defining
from auditor.prefetch import Prefetch
from auditor.program import GRAMMAR, Files
from auditor.sources.tree import MemoryTree

MODULES = {
    "pkg": ("pkg/__init__.py", True),
    "pkg.model": ("pkg/model.py", False),
    "pkg.base": ("pkg/base.py", False),
    "pkg.mixin": ("pkg/mixin.py", False),
    "pkg.other": ("pkg/other.py", False),
}
BASE, MIXIN = "from pkg.mixin import Mixin\nclass Base(Mixin): ...\n", "class Mixin: ...\n"
ALL = {"pkg/model.py", "pkg/base.py", "pkg/mixin.py"}


def files_of(model: str) -> Files:
    sources = {
        "pkg/__init__.py": "", "pkg/model.py": model, "pkg/base.py": BASE, "pkg/mixin.py": MIXIN,
        "pkg/other.py": "class Other: ...\n",
    }  # fmt: skip
    return Files(MemoryTree({path: text.encode() for path, text in sources.items()}))


MODELS = {
    "a base": ("from pkg.base import Base\nclass Draft(Base): ...\n", ALL),
    "under another name": ("from .base import Base as B\nclass Draft(B): ...\n", ALL),
    "in brackets": ("from pkg.base import Base\nclass Draft(Base[int]): ...\n", ALL),
    "by a class between": (
        "from .base import Base\nclass A(Base): ...\nclass Draft(A): ...\n",
        ALL,
    ),
    "in a branch": (
        "from x import p\nif p:\n    from pkg.base import Base as Draft\n"
        "else:\n    from pkg.other import Other as Draft\n",
        {"pkg/base.py", "pkg/mixin.py", "pkg/other.py"},
    ),
    "in a handler": (
        "try:\n    from x import Draft\nexcept ImportError:\n"
        "    from pkg.other import Other as Draft\n",
        {"pkg/other.py"},
    ),
    "assigned": ("from pkg.other import Other\nDraft = Other\n", {"pkg/other.py"}),
    "by a hook": (
        "def __getattr__(name):\n    if name == 'Draft':\n"
        "        from pkg.other import Other as Draft\n        return Draft\n",
        {"pkg/other.py"},
    ),
    "not at all": ("from pkg.other import Other\nclass Draft: ...\n", {"pkg/model.py"}),
    "a circle": ("from pkg.model import Draft\nclass A(Draft): ...\n", set()),
    "foreign": ("from torch.nn import Module\nclass Draft(Module): ...\n", {"pkg/model.py"}),
    "no Python": ("class Draft(:\n", set()),
}


@pytest.mark.parametrize(("model", "wanted"), MODELS.values(), ids=MODELS)
def test_a_class_and_its_bases(model: str, wanted: set[str]) -> None:
    files = files_of(model)
    files.load([path for path, _ in MODULES.values()])
    assert Defining(files, MODULES, [("pkg.model", "Draft")]).more() == wanted


def test_a_file_that_was_not_read_is_not_read_for_it() -> None:
    files = files_of(MODELS["a base"][0])
    found = Defining(files, MODULES, [("pkg.model", "Draft"), ("x", "Draft")])
    assert found.more() == set()
    files.load(["pkg/model.py", "pkg/mixin.py"])
    assert found.more() == {"pkg/model.py"}
    files.load(["pkg/base.py"])
    assert found.more() == {"pkg/base.py", "pkg/mixin.py"}
    assert found.more() == set()


@pytest.mark.parametrize("processes", [1, 2])
def test_they_are_parsed_in_full_ahead(processes: int) -> None:
    files = files_of(MODELS["a base"][0])
    with Prefetch(files, MODULES, processes) as ahead:
        ahead.read(["pkg.model"], [("pkg.model", "Draft")])
    assert {path for path, _ in MODULES.values() if files.has(GRAMMAR, path)} == ALL
