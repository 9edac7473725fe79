"""A vLLM of a few files, held in memory: a dict of path to source in, a Source out.

Paths are relative to the folder that holds ``vllm/``. The files below are what every tree has;
a case gives the files that it is about, which replace those of the same path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage, Row
from auditor.sources.tree import MemoryTree, Source

PLATFORMS = ("cuda", "rocm", "xpu", "cpu", "tpu", "oot")
ARCHITECTURE = "DraftModel"
MODULE, CLASS = "vllm.models.draft", "Draft"
REGISTRY = "vllm/model_executor/models/registry.py"
INTERFACES = "vllm/model_executor/models/interfaces.py"
SPECULATIVE = "vllm/config/speculative.py"
GUARD = "vllm/v1/spec_decode/proposer.py"
RUNNER = "vllm/v1/worker/gpu_model_runner.py"
INIT = "vllm/models/draft/__init__.py"
MIXIN = "vllm.model_executor.models.interfaces.LocalArgmaxMixin"

WITH_METHOD = """
import torch.nn as nn

class Draft(nn.Module):
    def compute_logits(self, hidden_states):
        return None

    def get_top_tokens(self, hidden_states):
        return None
"""
WITHOUT_METHOD = """
import torch.nn as nn

class Draft(nn.Module):
    def compute_logits(self, hidden_states):
        return None
"""
WITH_MIXIN = """
import torch.nn as nn
from vllm.model_executor.models.interfaces import LocalArgmaxMixin

class Draft(LocalArgmaxMixin, nn.Module):
    def compute_logits(self, hidden_states):
        return None
"""

BASE: dict[str, str] = {
    "vllm/__init__.py": "",
    "vllm/platforms/__init__.py": """
        from typing import TYPE_CHECKING

        _current_platform = None

        def __getattr__(name):
            if name == "current_platform":
                global _current_platform
                if _current_platform is None:
                    _current_platform = object()
                return _current_platform
            raise AttributeError(f"no {name} here")
        """,
    "vllm/config/__init__.py": "",
    SPECULATIVE: """
        from typing import Literal

        SpeculativeMethod = Literal["mtp"]

        class SpeculativeConfig:
            method: str | None = None
            use_local_argmax_reduction: bool = False
        """,
    "vllm/v1/__init__.py": "",
    "vllm/v1/spec_decode/__init__.py": "",
    GUARD: """
        class Proposer:
            def load_model(self):
                if self.use_local_argmax_reduction:
                    if not hasattr(self.model, "get_top_tokens"):
                        raise ValueError(
                            f"{self.model.__class__.__name__} cannot reduce locally: "
                            "it has no get_top_tokens()."
                        )

            def propose(self, hidden_states):
                if self.use_local_argmax_reduction:
                    return self.model.get_top_tokens(hidden_states)
                return self.model.compute_logits(hidden_states).argmax(dim=-1)
        """,
    "vllm/v1/worker/__init__.py": "",
    RUNNER: """
        from vllm.v1.spec_decode.proposer import Proposer

        class GPUModelRunner:
            def __init__(self, vllm_config):
                self.speculative_config = vllm_config.speculative_config
                if self.speculative_config:
                    self.drafter = Proposer(vllm_config)
        """,
    "vllm/model_executor/__init__.py": "",
    "vllm/model_executor/models/__init__.py": "",
    INTERFACES: """
        class LocalArgmaxMixin:
            def get_top_tokens(self, hidden_states):
                return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
        """,
    "vllm/models/__init__.py": "",
    "vllm/models/draft/nvidia.py": WITH_METHOD,
    "vllm/models/draft/amd.py": WITHOUT_METHOD,
    "vllm/models/draft/common.py": WITH_MIXIN,
}


def registry(entries: Mapping[str, tuple[str, str]]) -> str:
    """The source of a registry with these entries."""
    rows = "".join(f"    {name!r}: {target!r},\n" for name, target in entries.items())
    return f"_SPECULATIVE_DECODING_MODELS = {{\n{rows}}}\n"


def files(
    given: Mapping[str, str | bytes], entry: tuple[str, str] = (MODULE, CLASS)
) -> dict[str, bytes]:
    """All files of a tree, as bytes."""
    sources = {**BASE, REGISTRY: registry({ARCHITECTURE: entry}), **given}
    return {
        path: text if isinstance(text, bytes) else dedent(text).lstrip("\n").encode()
        for path, text in sources.items()
    }


def source(
    given: Mapping[str, str | bytes],
    entry: tuple[str, str] = (MODULE, CLASS),
    version: str = "0.33.0",
) -> Source:
    """The tree as a source."""
    tree = MemoryTree(files(given, entry))
    return Source("folder", version, "a mini tree", "given by a test", tree)


def coverage(
    given: Mapping[str, str | bytes],
    request: Request | None = None,
    entry: tuple[str, str] = (MODULE, CLASS),
) -> Coverage:
    """The audit of a tree."""
    return audit(source(given, entry), request or Request(), Resources(processes=1))


def row_of(document: Coverage, platform: str, architecture: str = ARCHITECTURE) -> Row:
    """The one row of an architecture on a platform."""
    (row,) = [
        row for row in document.rows if (row.architecture, row.platform) == (architecture, platform)
    ]
    return row


def write(folder: Path, given: Mapping[str, str | bytes]) -> Path:
    """The tree as files below ``folder``."""
    for path, content in files(given).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def line_of(given: Mapping[str, str | bytes], path: str, text: str) -> int:
    """The one line of ``path`` that holds ``text``, counted from 1."""
    lines = files(given)[path].decode().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


@dataclass(frozen=True)
class Answer:
    """What a row says, but for its evidence."""

    verdict: str
    hasattr: bool | None = None
    cls: str | None = None
    owner: str | None = None
    error: tuple[str, str] | None = None
    reason: str | None = None

    @classmethod
    def of(cls, row: Row) -> Answer:
        """The answer of a row; the reason of ``yes?`` is left out."""
        dotted = f"{row.module}.{row.class_}" if row.module else None
        error = (row.error.type, row.error.message) if row.error else None
        reason = None if row.verdict == "yes?" else row.reason
        return cls(row.verdict, row.hasattr, dotted, row.owner, error, reason)


def has(cls: str, owner: str = "own") -> Answer:
    """It loads and has the method."""
    return Answer("yes?", True, cls, cls if owner == "own" else owner)


def lacks(cls: str) -> Answer:
    """It loads and lacks the method."""
    return Answer("no", False, cls)


def fails(type_: str, message: str, verdict: str = "import") -> Answer:
    """It cannot be loaded."""
    return Answer(verdict, error=(type_, message))


def absent(name: str = CLASS, module: str = MODULE) -> Answer:
    """The module loads and has no such name."""
    return fails("AttributeError", f"module {module!r} has no attribute {name!r}", "absent")


def undecided(reason: str, cls: str | None = None) -> Answer:
    """It stays open."""
    return Answer("?", cls=cls, reason=reason)


@dataclass(frozen=True)
class Side:
    """A tree and what it answers; the key ``else`` stands for all platforms not named."""

    files: Mapping[str, str]
    answers: Mapping[str, Answer]
    entry: tuple[str, str] = (MODULE, CLASS)

    def expected(self) -> dict[str, Answer]:
        """The answer for each platform."""
        named = {name: answer for key, answer in self.answers.items() for name in key.split()}
        return {name: named[name] if name in named else named["else"] for name in PLATFORMS}


@dataclass(frozen=True)
class Case:
    """A spelling, and a twin that differs in one detail and therefore answers otherwise."""

    sentence: str
    side: Side
    twin: Side = field(kw_only=True)


def sides(cases: Sequence[Case]) -> list[tuple[str, Side]]:
    """Each case and each twin, with the sentence that names it."""
    return [(case.sentence, case.side) for case in cases] + [
        (f"{case.sentence} (twin)", case.twin) for case in cases
    ]
