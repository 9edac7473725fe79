"""Definitions that an edit adds or takes away, and what keeps an answer then."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees.minivllm import (
    ARCHITECTURE,
    INIT,
    REGISTRY,
    RUNNER,
    WITH_METHOD,
    WITHOUT_METHOD,
    source,
    write,
)
from trees.plugins import VLLM, general, opened

from auditor.api import Request, Resources, audit
from auditor.coverage import to_json
from auditor.facts import ModuleFacts
from auditor.sources.open import open_source
from auditor.syntax.module import module_facts
from auditor.unspoken import edit_between

NVIDIA, AMD = "vllm/models/draft/nvidia.py", "vllm/models/draft/amd.py"
TOOLS, STAR = "vllm/models/draft/tools.py", "vllm/models/draft/star.py"
SETUP = "setup.py"
PARTS, SUB = "vllm/models/draft/parts/__init__.py", "vllm/models/draft/parts/sub.py"

FILES = {
    INIT: """
        import colorsys
        import importlib
        import json
        import os.path
        import sys
        from vllm.platforms import current_platform
        from . import tools
        from .parts import sub
        from .star import *

        def rocm():
            try:
                known_later
            except NameError:
                return current_platform.is_rocm()
            return False

        LIMIT = 3
        COMPUTED = getattr(tools, "joined" + "_up", None)
        PRESENT = hasattr(tools, "spare_tool")
        LOADED = "wa" + "ve" in sys.modules
        sys.modules["chu" + "nk"] = sys
        counter = json.loads("1") + colorsys.ONE
        for counter in (1, 2):
            print(os.path.join("a", "b"), counter)

        if rocm():
            from .amd import Draft
        else:
            from .nvidia import Draft
        """,
    NVIDIA: WITH_METHOD,
    AMD: WITHOUT_METHOD,
    TOOLS: """
        import torch

        OLD = 1
        KNOWN = {"a": 1}
        ONLY_HERE = 1

        def unread(x):
            return helper(x) + OLD

        class Tool:
            size = 2

            def work(self):
                return missing
        """,
    STAR: """
        MANY = (1, 2)
        """,
    PARTS: "",
    SETUP: "ext_modules = []\n",
    SUB: """
        def alone():
            for name in list(globals()):
                pass

        alone()
        """,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", dict(FILES))


def document(tree: Path, cache: Path | None = None, request: Request | None = None) -> bytes:
    opened = open_source(str(tree), cwd=tree)
    return to_json(audit(opened, request or Request(), Resources(cache, 1)))


def edited(path: Path, old: str, new: str) -> None:
    """Replace what stands in a file; the end of the file where that is empty."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (TOOLS, "", "\nADDED = 1\n"),
        (TOOLS, "", "\nADDED = ALSO_ADDED = [1, ('a', None), {'b': {2}}, -1.5]\n"),
        (TOOLS, "", "\ndef helper(x: int, *rest, y=1) -> torch.Tensor:\n    return x\n"),
        (TOOLS, "", "\nasync def newly_added():\n    import nothing\n"),
        (TOOLS, "", "\nclass Added:\n    one = 1\n\n    def two(self):\n        return 2\n"),
        (TOOLS, "OLD = 1", "ADDED = 0\n\n\ndef newly_added():\n    pass\n\n\nOLD = 1"),
        (TOOLS, "import torch", "ADDED: int = 0\nimport torch"),
        (TOOLS, "OLD = 1\n", ""),
        (TOOLS, "OLD = 1", "OLD = 2"),
        (TOOLS, "class Tool", "class Thing"),
        (TOOLS, "def unread(x):\n    return helper(x) + OLD\n", ""),
        (TOOLS, 'KNOWN = {"a": 1}', "KNOWN = ADDED = True"),
        (INIT, "LIMIT = 3", "LIMIT = 4"),
        (NVIDIA, "", "\nADDED = 1\n"),
        (NVIDIA, "import torch", "ADDED = 1\nimport torch"),
        # What other files have as a variable or as a library, and not as an attribute.
        (TOOLS, "", "\nimport colorsys\n"),
        (TOOLS, "", "\nimport heapq, os.path\nfrom typing import Any as Added\n"),
        (TOOLS, "", "\ncounter = 1\n"),
        (NVIDIA, "import torch", "import colorsys\nimport torch"),
        (INIT, "", "\nimport uuid\n"),
    ],
)
def test_what_nothing_speaks_of_runs_nothing(
    tree: Path, tmp_path: Path, runs: list[str], path: str, old: str, new: str
) -> None:
    before = document(tree, tmp_path / "cache")
    edited(tree / path, old, new)
    runs.clear()
    after = document(tree, tmp_path / "cache")
    assert runs == []
    assert after != before
    assert after == document(tree)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(TOOLS, "", "\nlog = print('a')\n", id="a call"),
        pytest.param(TOOLS, "", "\nfrom . import parts\n", id="an import of the tree"),
        pytest.param(TOOLS, "", "\nimport numpy\n", id="an import of another library"),
        pytest.param(TOOLS, "", "\nfrom os import *\n", id="a star import of a library"),
        pytest.param(TOOLS, "", "\nimport wave\n", id="a library sys.modules is asked for"),
        pytest.param(TOOLS, "", "\nimport chunk.a\n", id="a library sys.modules is given"),
        pytest.param(TOOLS, "", "\nimport json as spare_tool\n", id="a library by another name"),
        pytest.param(TOOLS, "", "\nclass Added:\n    import json\n", id="an import in a class"),
        pytest.param(TOOLS, "", "\nADDED = OLD\n", id="a name is read"),
        pytest.param(TOOLS, "", "\nADDED = f'{OLD}'\n", id="a text is put together"),
        pytest.param(TOOLS, "", "\nADDED = {**KNOWN}\n", id="a dict is copied"),
        pytest.param(TOOLS, "", "\nADDED = {(): {()}, 1: {[]}}\n", id="not hashable"),
        pytest.param(TOOLS, "", "\nADDED = 1\nADDED.x = 2\n", id="an attribute is set"),
        pytest.param(
            TOOLS, "", "\n@torch.no_grad()\ndef newly_added():\n    pass\n", id="a decorator"
        ),
        pytest.param(
            TOOLS, "", "\ndef newly_added(x=OLD()):\n    pass\n", id="a default is called"
        ),
        pytest.param(TOOLS, "", "\ndef newly_added(x: Nowhere):\n    pass\n", id="an unbound name"),
        pytest.param(TOOLS, "", "\nclass Added(Tool):\n    pass\n", id="a base"),
        pytest.param(TOOLS, "", "\nclass Added(metaclass=Tool):\n    pass\n", id="a metaclass"),
        pytest.param(TOOLS, "", "\nclass Added:\n    __slots__ = ('a',)\n    a = 1\n", id="slots"),
        pytest.param(TOOLS, "", "\nclass Added:\n    print('a')\n", id="a class that runs"),
        pytest.param(TOOLS, "", "\n__all__ = ['OLD']\n", id="__all__"),
        pytest.param(TOOLS, "", "\ndef __getattr__(name):\n    return 1\n", id="__getattr__"),
        pytest.param(TOOLS, "", "\nmagnitud\u00e9 = 1\n", id="not ASCII"),
        pytest.param(TOOLS, "", "\njoined_up = 1\n", id="asked for by a computed name"),
        pytest.param(TOOLS, "", "\nnvidia = 1\n", id="named as a module"),
        pytest.param(TOOLS, "", "\nONLY_HERE = 2\n", id="bound at the top level already"),
        pytest.param(TOOLS, "", "\nspare_tool = 1\n", id="in another file"),
        pytest.param(INIT, "LIMIT = 3", "known_later = 3", id="in a function that is run"),
        pytest.param(SETUP, "", "ADDED = 1\n", id="not a module of the run"),
        pytest.param(TOOLS, "", "\nLogitsProcessor = 1\n", id="in the rules"),
        pytest.param(TOOLS, "", "\nOVER = 1\n", id="in the answer"),
        pytest.param(TOOLS, "", "".join(f"\nadded_{n} = 1" for n in range(40)), id="too many"),
        pytest.param(TOOLS, "import torch", "if True:\n    ADDED = 1\nimport torch", id="a branch"),
        pytest.param(STAR, "", "\nADDED = 1\n", id="a star import"),
        pytest.param(STAR, "MANY = (1, 2)\n", "", id="gone from a star import"),
        pytest.param(SUB, "", "\nADDED = 1\n", id="globals()"),
        pytest.param(INIT, "LIMIT = 3", "amd = 3", id="a submodule"),
        pytest.param(RUNNER, "", "\ndef newly_added():\n    pass\n", id="read as a whole"),
        pytest.param(REGISTRY, "", "\nADDED_MODELS = {}\n", id="of the registry"),
    ],
)
def test_what_something_may_speak_of_is_run_again(
    tree: Path, tmp_path: Path, runs: list[str], path: str, old: str, new: str
) -> None:
    request = Request(overrides={"Other": "vllm.models.draft.tools:OVER"})
    document(tree, tmp_path / "cache", request)
    edited(tree / path, old, new)
    runs.clear()
    after = document(tree, tmp_path / "cache", request)
    assert runs
    assert after == document(tree, None, request)


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param("from .tools \\\n        import ADDED", id="over two lines"),
        pytest.param("from .tools import gr\u00f6\u00dfe, ADDED", id="after one that is not ASCII"),
        pytest.param("(tools.# of it\r    ADDED)", id="lines that end as on old Macs"),
    ],
)
def test_an_import_finds_a_name_however_it_is_written(
    tree: Path, tmp_path: Path, runs: list[str], asks: str
) -> None:
    edited(tree / TOOLS, "", "\ngr\u00f6\u00dfe = 1\n")
    probe = f"try:\n    {asks}\nexcept (AttributeError, ImportError):\n    LIMIT = 4\n"
    text = (tree / INIT).read_text().replace("LIMIT = 3\n", probe)
    (tree / INIT).write_bytes((text.replace("\n", "\r") if "\r" in asks else text).encode())
    document(tree, tmp_path / "cache")
    edited(tree / TOOLS, "", "\nADDED = 1\n")
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert len(runs) == 12


@pytest.mark.parametrize("added", ["import zipapp as zapped", "from zipapp import zapped"])
def test_a_library_that_fails_by_the_request(
    tree: Path, tmp_path: Path, runs: list[str], added: str
) -> None:
    request = Request(failing_modules={"zipapp": ("OSError", "it is broken")})
    before = document(tree, tmp_path / "cache", request)
    edited(tree / TOOLS, "", f"\n{added}\n")
    after = document(tree, tmp_path / "cache", request)
    assert after == document(tree, None, request)
    assert b"it is broken" in after
    assert b"it is broken" not in before


def test_a_plugin_that_has_a_package_of_a_librarys_name(tmp_path: Path) -> None:
    more = {"graphlib/__init__.py": "", "graphlib/bad.py": "raise OSError('it is broken')\n"}
    plugin = opened(tmp_path, general("pass", more))
    cache = Resources(tmp_path / "cache", 1)

    def answer(helper: str, resources: Resources | None = None) -> bytes:
        package = {INIT: f"from . import helper\n{WITH_METHOD}"}
        over = source({**VLLM, **package, "vllm/models/draft/helper.py": helper})
        return to_json(audit(over, Request(platforms=("rocm",)), resources, [plugin]))

    for added in ("", "import graphlib.bad as zapped\n", "from graphlib.bad import zapped\n"):
        assert answer(added, cache) == answer(added)
        assert (b"it is broken" in answer(added)) == bool(added)


def test_names_that_two_edits_share_are_spoken_of(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    document(tree, tmp_path / "cache")
    edited(tree / TOOLS, "", "\nADDED = 1\n")
    edited(tree / NVIDIA, "", "\ndef newly_added(x='ADDED'):\n    pass\n")
    runs.clear()
    after = document(tree, tmp_path / "cache")
    assert after == document(tree)
    assert runs


def test_a_class_that_only_a_row_names_is_spoken_of(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    """The registry puts the name of the class together."""
    target = "('vllm.models.draft.tools', 'Dr' + 'aftee')"
    rows = f"_SPECULATIVE_DECODING_MODELS = {{{ARCHITECTURE!r}: {target}}}\n"
    (tree / REGISTRY).write_text(rows)
    document(tree, tmp_path / "cache")
    edited(tree / TOOLS, "", "\nclass Draftee:\n    pass\n")
    runs.clear()
    after = document(tree, tmp_path / "cache")
    assert after == document(tree)
    assert runs


ASKS = 'hasattr(tools, "spare_tool")'


@pytest.mark.parametrize(
    ("path", "asks"),
    [
        pytest.param(INIT, 'hasattr(tools, "AD" "DED")', id="two texts side by side"),
        pytest.param(INIT, 'hasattr(tools, "\\x41DDED")', id="an escape"),
        pytest.param(INIT, 'hasattr(tools, "AD\\\nDED")', id="a text over two lines"),
        pytest.param(INIT, "bool(tools.\uff21DDED)", id="another spelling (PEP 3131)"),
    ],
)
def test_a_name_is_found_however_it_is_spelled(
    tree: Path, tmp_path: Path, runs: list[str], path: str, asks: str
) -> None:
    text = (tree / path).read_text()
    probe = f"try:\n    KNOWN = {asks}\nexcept AttributeError:\n    KNOWN = False\n"
    text = text.replace(f"PRESENT = {ASKS}\n", probe + "if KNOWN:\n    raise OSError('known')\n")
    (tree / path).write_text(text)
    before = document(tree, tmp_path / "cache")
    edited(tree / TOOLS, "", "\nADDED = 1\n")
    runs.clear()
    after = document(tree, tmp_path / "cache")
    assert len(runs) == 6
    assert after == document(tree)
    assert b"OSError" in after
    assert b"OSError" not in before


@pytest.mark.parametrize("first", [b"", b"\n", b"\r", b"#!/usr/bin/env python\r\n"])
def test_a_file_in_another_encoding_may_speak_of_anything(
    tree: Path, tmp_path: Path, runs: list[str], first: bytes
) -> None:
    coded = b"# coding: utf-7\nfrom .. import tools\nX = lambda: tools.+AEEARABEAEUARA-\n"
    (tree / PARTS).write_bytes(first + coded)
    document(tree, tmp_path / "cache")
    edited(tree / TOOLS, "", "\nADDED = 1\n")
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert len(runs) == 12


@pytest.mark.parametrize("cookie", ["# -*- coding: utf-8 -*-", "# vim: fileencoding=UTF8", "# -"])
def test_a_file_that_declares_the_usual_encoding_is_read_as_any(
    tree: Path, tmp_path: Path, runs: list[str], cookie: str
) -> None:
    (tree / PARTS).write_text(f"#!/usr/bin/env python\n{cookie}\nX = 'caf\u00e9'\n")
    document(tree, tmp_path / "cache")
    edited(tree / TOOLS, "", "\nADDED = 1\n")
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert len(runs) == 6, "only without the cache"


def test_a_function_that_speaks_of_the_name_and_moved(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    edited(tree / INIT, "    try:\n        known_later", "    try:\n        tools.ADDED")
    edited(tree / INIT, "except NameError", "except AttributeError")
    document(tree, tmp_path / "cache")
    edited(tree / INIT, "import importlib", "#\n#\n#\n#\n#\n#\n#\n#\nimport importlib")
    edited(tree / TOOLS, "", "\nADDED = 1\n")
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert len(runs) == 12


def test_a_star_import_of_a_folder_without_init_is_kept(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    (tree / "vllm" / "models" / "folder").mkdir()
    (tree / "vllm" / "models" / "folder" / "inner.py").write_text("X = 1\n")
    edited(tree / TOOLS, "", "\nfrom vllm.models.folder import *\n")
    document(tree, tmp_path / "cache")
    edited(tree / TOOLS, "", "\nADDED = 1\n")
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert len(runs) == 6, "only without the cache"


def test_a_refused_answer_is_no_ground_of_the_next(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    """A file that is imported no longer may change."""
    aside = tree / "vllm" / "models" / "aside.py"
    aside.write_text("X = 1\n")
    edited(tree / INIT, "import importlib\n", "import importlib\nfrom vllm.models import aside\n")
    document(tree, tmp_path / "cache")
    edited(tree / INIT, "from vllm.models import aside\n", "")
    edited(aside, "X = 1", "X = 2")
    document(tree, tmp_path / "cache")
    edited(aside, "", "\nimport os\n")
    runs.clear()
    document(tree, tmp_path / "cache")
    assert runs == []


def facts(text: str) -> ModuleFacts:
    found = module_facts(text.encode(), "vllm")
    assert isinstance(found, ModuleFacts)
    return found


def test_an_edit_says_where_lines_went_and_which_names_differ() -> None:
    before = facts("import a\n\ndef one(): pass\n\nX = 1\n")
    after = facts("NEW = 1\nimport a\n\n\ndef one(): pass\n")
    edit = edit_between(before, after)
    assert edit is not None
    assert edit.names == {"NEW", "X"}
    assert edit.lines == {1: 2, 3: 5}


def test_equal_constants_of_two_types_differ() -> None:
    edit = edit_between(facts("X = 1\nY = 2\n"), facts("X = True\nY = 2\n"))
    assert edit is not None
    assert edit.names == {"X"}


def test_a_file_of_many_equal_statements_that_defines_much_more_is_not_compared() -> None:
    before = "f()\n" * 1000
    after = "".join(f"def g{n}(): pass\nf()\n" for n in range(1000))
    assert edit_between(facts(before), facts(after)) is None
