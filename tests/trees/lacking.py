"""Drafts that lack the method, in a mini tree with an engine that calls it."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent, indent

from auditor.api import Request, Resources
from auditor.sources.tree import Source
from codemods.planning import plan
from codemods.plans import Plan
from trees.heads import IMPORTS, LAYERS
from trees.minivllm import GUARD, INIT, SPECULATIVE, source

RUNNER = "vllm/v1/worker/gpu_model_runner.py"


def engine(call: str = "hidden_states", logits: str = "hidden_states") -> dict[str, str]:
    """An engine whose one proposer makes these calls on the draft model."""
    return {
        SPECULATIVE: """
            from typing import Literal

            SpeculativeMethod = Literal["mtp"]

            class SpeculativeConfig:
                method: str | None = None
                use_local_argmax_reduction: bool = False
                '''Use a local argmax.'''
            """,
        GUARD: f"""
            class Proposer:
                def load_model(self):
                    if self.use_local_argmax_reduction:
                        if not hasattr(self.model, "get_top_tokens"):
                            raise ValueError("no get_top_tokens()")

                def propose(self, hidden_states, spec_step_idx=0):
                    if self.use_local_argmax_reduction:
                        return self.model.get_top_tokens({call})
                    return self.model.compute_logits({logits}).argmax(dim=-1)
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
    }


STEP = engine("hidden_states, spec_step_idx=spec_step_idx",
              "hidden_states, spec_step_idx=spec_step_idx")  # fmt: skip
INITIAL = """
def __init__(self):
    super().__init__()
    self.lm_head = ParallelLMHead(8, 8)
    self.logits_processor = LogitsProcessor(8)
    self.norm = RMSNorm(8)
"""


def draft(body: str, bases: str = "nn.Module", before: str = "", init: str = INITIAL) -> str:
    """A file with one draft class."""
    inner = indent(f"{dedent(init).strip()}\n\n{dedent(body).strip()}\n", "    ")
    return f"{IMPORTS.strip()}\n\n{dedent(before)}\n\nclass Draft({bases}):\n{inner}"


def tree(
    given: Mapping[str, str | bytes] | str, callers: Mapping[str, str] | None = None
) -> Source:
    """A tree with a draft, given as files or as the source of its one file."""
    own = {INIT: given} if isinstance(given, str) else given
    return source({**LAYERS, **(engine() if callers is None else callers), **own})


def planned(one: Source, *architectures: str, platforms: tuple[str, ...] = ()) -> Plan:
    """What would be done for it."""
    request = Request(platforms=platforms, architectures=architectures)
    return plan(one, request, Resources(processes=1))


def added(result: Plan, path: str = INIT) -> str:
    """The lines that the one patch adds to a file, without their signs."""
    (family,) = result.families
    old = family.before[path].decode().splitlines()
    new = family.after[path].decode().splitlines()
    import difflib

    lines = difflib.ndiff(old, new)
    return "\n".join(line[2:] for line in lines if line.startswith("+ ")).strip("\n")
