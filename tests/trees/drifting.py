"""A draft model whose head an edit changes, as trees before and after."""

from __future__ import annotations

from trees.heads import IMPORTS, LAYERS
from trees.minivllm import registry

DRAFT = "vllm/model_executor/models/draft.py"
OTHER = "vllm/model_executor/models/other.py"
REGISTRY = "vllm/model_executor/models/registry.py"
INTERFACES = "vllm/model_executor/models/interfaces.py"

#: A draft model with one head, and the method written beside it.
PAIR = (
    IMPORTS
    + """

class Draft(nn.Module):
    def __init__(self):
        self.norm = RMSNorm(8)
        self.lm_head = ParallelLMHead(8, 8)
        self.logits_processor = LogitsProcessor(8)

    def compute_logits(self, hidden_states):
        return self.logits_processor(self.lm_head, hidden_states)

    def get_top_tokens(self, hidden_states):
        return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
"""
)
#: The same with the method inherited.
MIXED = PAIR.replace("class Draft(nn.Module)", "class Draft(LocalArgmaxMixin, nn.Module)").split(
    "    def get_top_tokens"
)[0]
#: The same without the method.
BARE = PAIR.split("    def get_top_tokens")[0]
#: A norm in one of the two methods only.
NORMED = PAIR.replace(
    "(self.lm_head, hidden_states)", "(self.lm_head, self.norm(hidden_states))", 1
)
#: A norm in both.
BOTH_NORMED = PAIR.replace(
    "(self.lm_head, hidden_states)", "(self.lm_head, self.norm(hidden_states))"
)
#: A wrapper whose two methods hand on to those of what it holds.
WRAPPED = (
    PAIR.replace("class Draft", "class Inner")
    + """

class Draft(nn.Module):
    def __init__(self):
        self.model = Inner()

    def compute_logits(self, hidden_states):
        return self.model.compute_logits(hidden_states)

    def get_top_tokens(self, hidden_states):
        return self.model.get_top_tokens(hidden_states)
"""
)
#: The same, written otherwise: other names, other lines, another order.
REWRITTEN = (
    IMPORTS
    + '''
# A comment that was not there.


class Draft(nn.Module):
    """A docstring."""

    def __init__(self):
        self.logits_processor = LogitsProcessor(8)
        self.lm_head = ParallelLMHead(
            8,
            8,
        )
        self.norm = RMSNorm(8)

    def get_top_tokens(self, hidden):
        head = self.lm_head
        return self.logits_processor.get_top_tokens(head, hidden)

    def compute_logits(
        self,
        hidden,
    ):
        processor, states = self.logits_processor, hidden
        logits = processor(self.lm_head, states)
        return logits
'''
)
ENTRY = ("draft", "Draft")


def tree(text: str = PAIR, **entries: tuple[str, str]) -> dict[str, str]:
    """The files of a tree with one draft model, and with the entries named."""
    return {
        **LAYERS,
        DRAFT: text,
        REGISTRY: registry(entries or {"DraftModel": ENTRY}),
    }
