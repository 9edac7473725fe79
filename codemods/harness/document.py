"""What ``codemod verify`` answers, and its JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = "1.1"

Live = Literal["passed", "failed", "not built", "not importable", "crashed", "not run"]


class MutantResult(msgspec.Struct, frozen=True):
    """One fault that was put into a method, and whether the test failed on it."""

    fault: str
    method: str
    killed: bool
    reason: str


class Verified(msgspec.Struct, frozen=True, omit_defaults=False):
    """One draft class: its term proof, its test in the real vLLM, and the mutants of the patch.

    Attributes:
        architecture: the first entry of the registry that is this class.
        cls: the dotted class.
        patch: the patch that gives it the method; empty where it has the method already.
        proof: the verdict of the audit, of the patched tree where there is a patch.
        live: how the generated test ended.
        passed, failed: numbers of test cases.
        reason: what stopped it, where something did.
        mutants: what was tried, in order.
        ranks: how two processes with ``torch.distributed`` agreed.
    """

    architecture: str
    cls: str
    patch: str
    proof: str
    live: Live
    passed: int
    failed: int
    reason: str
    mutants: tuple[MutantResult, ...]
    ranks: str


class Verification(msgspec.Struct, frozen=True):
    """The whole answer.

    ``python`` and ``platform`` are empty where nothing was run. ``refused``, ``undecided`` and
    ``unread`` name what has no class here, each as a line: an architecture that no patch is
    derived for, a row that could not be decided, and input that could not be read.
    """

    schema_version: str
    source: str
    python: str
    platform: str
    families: tuple[Verified, ...]
    refused: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[Verified, ...]:
        """Classes whose proof or test failed, or of which a mutant lived."""
        return tuple(one for one in self.families if _failed(one))


def _failed(one: Verified) -> bool:
    # A test that passes and that no fault was tried on proves nothing.
    lives = any(not mutant.killed for mutant in one.mutants) or (
        one.live == "passed" and not one.mutants
    )
    differs = bool(one.ranks) and one.ranks != "agree"
    return one.proof not in ("yes", "yes?") or one.live in ("failed", "crashed") or lives or differs
