"""What a draft model's head is built of, in a mini tree: layers, a predictor with a shared head."""

from __future__ import annotations

LAYERS = {
    "vllm/model_executor/layers/__init__.py": "",
    "vllm/model_executor/layers/logits_processor.py": """
        import torch.nn as nn

        class LogitsProcessor(nn.Module):
            pass
        """,
    "vllm/model_executor/layers/vocab_parallel_embedding.py": """
        import torch.nn as nn

        class VocabParallelEmbedding(nn.Module):
            pass

        class ParallelLMHead(VocabParallelEmbedding):
            pass
        """,
    "vllm/model_executor/layers/layernorm.py": """
        import torch.nn as nn

        class RMSNorm(nn.Module):
            pass
        """,
}
IMPORTS = """
import torch
import torch.nn as nn
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    VocabParallelEmbedding,
)
from vllm.model_executor.models.interfaces import LocalArgmaxMixin
"""
HEAD = (
    IMPORTS
    + """

class SharedHead(nn.Module):
    def __init__(self):
        self.norm = RMSNorm(8)
        self.head = nn.Linear(8, 8)

    def forward(self, hidden_states):
        return self.norm(hidden_states)

class Layer(nn.Module):
    def __init__(self):
        self.shared_head = SharedHead()

class Predictor(nn.Module):
    def __init__(self):
        self.first = 3
        self.layers = nn.ModuleDict({str(i): Layer() for i in range(2)})
        self.logits_processor = LogitsProcessor(8)
        self.spec_step_idx = 0

    def layer(self, step):
        return self.layers[str(self.first + step % 2)]

    def compute_logits(self, hidden_states, step=0):
        layer = self.layer(step)
        return self.logits_processor(layer.shared_head.head, layer.shared_head(hidden_states))

    def passed(self, hidden_states, lm_head, step=0):
        return self.logits_processor(lm_head, hidden_states)

    def stateful(self, hidden_states):
        return self.compute_logits(hidden_states, self.spec_step_idx)
"""
)
STEP = "model.layers[str((model.first + (spec_step_idx % 2)))].shared_head"
