"""What an edit leaves alone: line ends, the end of the file, comments, neighbours, formatting."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from trees.lacking import draft, planned, tree
from trees.minivllm import INIT

from codemods.diff import file_diff
from codemods.parsed import Parsed
from codemods.plans import Family, Refused

FLAT = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, hidden_states)
"""
NORMED = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, self.norm(hidden_states))
"""
LATER = """

def load_weights(self, weights):  # odd   spacing, 'quotes'
    return   set( weights )
"""
GIT = shutil.which("git")


def patched(source: str | bytes) -> tuple[bytes, bytes]:
    """The file before and after."""
    given = source if isinstance(source, bytes) else source.encode()
    (family,) = planned(tree({INIT: given})).families
    return family.before[INIT], family.after[INIT]


SOURCES = {
    "mixin": draft(FLAT + LATER),
    "method": draft(NORMED + LATER),
    "method at the end": draft(NORMED),
    "no final newline": draft(NORMED).rstrip("\n"),
    "no final newline, mixin": draft(FLAT).rstrip("\n"),
    "carriage returns": draft(NORMED + LATER).replace("\n", "\r\n"),
    "carriage returns, mixin": draft(FLAT).replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + draft(NORMED),
    "letters of more than one byte": draft(
        """
        def compute_logits(self, hidden_states):
            x = "ä\U0001f600"; return self.logits_processor(self.lm_head, self.norm(hidden_states))
        """
    ),
    "tabs": draft(NORMED).replace("    ", "\t"),
    "two spaces": draft(NORMED + LATER).replace("    ", "  "),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_line_that_was_there_is_there_byte_for_byte(source: str) -> None:
    before, after = patched(source)
    kept = [line for line in before.split(b"\n") if not line.startswith((b"class ", b"from "))]
    rest = iter(after.split(b"\n"))
    # In this order, each of the old lines is found among the new ones.
    assert all(any(line in (old, old + b"\r") for line in rest) for old in kept if old.strip())
    assert before.endswith(b"\n") is after.endswith(b"\n")
    assert (b"\r\n" in before) is (b"\r\n" in after)
    assert b"\r\n" not in before or after.count(b"\n") == after.count(b"\r\n")


@pytest.mark.skipif(GIT is None, reason="git is not installed")
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_git_applies_the_diff_and_takes_it_back(source: str, tmp_path: Path) -> None:
    before, after = patched(source)
    place = tmp_path / INIT
    place.parent.mkdir(parents=True)
    place.write_bytes(before)
    diff = tmp_path / "one.patch"
    diff.write_bytes(file_diff(INIT, before, after))
    assert _git(tmp_path, "apply", "--check", "one.patch")
    assert _git(tmp_path, "apply", "one.patch")
    assert place.read_bytes() == after
    assert _git(tmp_path, "apply", "-R", "one.patch")
    assert place.read_bytes() == before


def _git(folder: Path, *args: str) -> bool:
    # Line ends are compared as they are, whatever the machine's settings say.
    quiet = ["-c", "core.autocrlf=false", "-c", "core.whitespace=cr-at-eol"]
    done = subprocess.run(["git", *quiet, *args], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("name", ["mixin", "method", "method at the end"])
def test_ruff_finds_nothing_to_change_in_the_lines_that_are_new(name: str, tmp_path: Path) -> None:
    before, after = patched(_formatted(SOURCES[name].encode(), tmp_path))
    assert before != after
    assert _formatted(after, tmp_path) == after


def _formatted(content: bytes, folder: Path) -> bytes:
    place = folder / "one.py"
    place.write_bytes(content)
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run(
        [*ruff, "check", "--isolated", "--select", "I", "--fix", "-q", place], check=True
    )
    subprocess.run([*ruff, "format", "--isolated", "-q", place], check=True)
    return place.read_bytes()


IMPORTS = {
    "into a line that has room": (
        "from .interfaces import SupportsPP",
        "from .interfaces import LocalArgmaxMixin, SupportsPP",
    ),
    "into a list, in its order": (
        "from .interfaces import (\n    EagleMixin,\n    SupportsPP,\n    is_pp,\n)",
        "from .interfaces import (\n    EagleMixin,\n    LocalArgmaxMixin,\n    SupportsPP,\n"
        "    is_pp,\n)",
    ),
    "before a relative neighbour": (
        "import torch\n\nfrom .utils import maybe",
        "import torch\n\nfrom .interfaces import LocalArgmaxMixin\nfrom .utils import maybe",
    ),
    "after a relative neighbour": (
        "import torch\n\nfrom .deepseek import Target",
        "import torch\n\nfrom .deepseek import Target\nfrom .interfaces import LocalArgmaxMixin",
    ),
    "among absolute ones": (
        "import torch\n\nfrom vllm.config import A\nfrom vllm.sequence import B",
        "import torch\n\nfrom vllm.config import A\n"
        "from vllm.model_executor.models.interfaces import LocalArgmaxMixin\n"
        "from vllm.sequence import B",
    ),
    "as the first of its section": (
        "import torch\n\nfrom vllm.sequence import B",
        "import torch\n\nfrom vllm.model_executor.models.interfaces import LocalArgmaxMixin\n"
        "from vllm.sequence import B",
    ),
    "not twice": (
        "from vllm.model_executor.models.interfaces import LocalArgmaxMixin",
        "from vllm.model_executor.models.interfaces import LocalArgmaxMixin",
    ),
}


@pytest.mark.parametrize(("before", "after"), IMPORTS.values(), ids=IMPORTS)
def test_an_import_goes_where_isort_wants_it(before: str, after: str, tmp_path: Path) -> None:
    import libcst as cst

    from codemods.importing import add_import

    package = "vllm.model_executor.models"
    module = cst.parse_module(f"{before}\n\n\nx = 1\n")
    result = add_import(module, package, f"{package}.interfaces.LocalArgmaxMixin", 88)
    assert result.code == f"{after}\n\n\nx = 1\n"


BROKEN = {
    "an encoding that there is not": b"# coding: no-such-one\nx = 1\n",
    "two encodings": b"\xef\xbb\xbf# coding: latin-1\nx = 1\n",
    "bytes that the encoding has not": b"x = '\xff'\n",
    "no Python": b"x = (\n",
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_a_file_that_cannot_be_parsed_is_refused(source: bytes) -> None:
    with pytest.raises(Refused) as caught:
        Parsed("a.py", source)
    assert caught.value.refusal.code == "not-editable"


def test_only_the_draft_file_changes() -> None:
    (family,) = planned(tree(draft(NORMED))).families
    assert isinstance(family, Family)
    assert list(family.after) == [INIT]
