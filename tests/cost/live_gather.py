"""Run by an interpreter that has vLLM: how many bytes do both ways really gather?

Reads a JSON list of ``[batch, vocabulary, ranks, dtype]`` from standard input; writes, for each,
the bytes of what the collective returns without the flag, after the padding is cut, and with it.
The ranks but the first are stood in for by copies of what the first sends.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.model_executor.layers import logits_processor as module
from vllm.model_executor.layers import vocab_parallel_embedding as embedding

HIDDEN = 8


def main() -> None:
    """Answer every case."""
    answers = [_gathered(*case) for case in json.load(sys.stdin)]
    print(json.dumps(answers), file=sys.__stdout__)


def _gathered(batch: int, vocabulary: int, ranks: int, dtype: str) -> list[int]:
    sizes: list[int] = []

    def gather(tensor: torch.Tensor, dim: int = -1) -> torch.Tensor:
        whole = torch.cat([tensor] * ranks, dim=dim)
        sizes.append(whole.numel() * whole.element_size())
        return whole

    hidden = torch.randn(batch, HIDDEN).to(getattr(torch, dtype))
    with _world(ranks), mock.patch.object(module, "tensor_model_parallel_all_gather", gather):
        head: Any = embedding.ParallelLMHead(vocabulary, HIDDEN, params_dtype=hidden.dtype)
        torch.nn.init.normal_(head.weight)
        head.quant_method.process_weights_after_loading(head)
        processor = module.LogitsProcessor(vocabulary)
        logits = processor(head, hidden)
        processor.get_top_tokens(head, hidden)
    return [logits.numel() * logits.element_size(), sizes[-1]]


def _world(ranks: int) -> ExitStack:
    """The first of so many ranks, without a process group."""
    stack = ExitStack()
    stack.enter_context(set_current_vllm_config(VllmConfig()))
    for name, value in (
        ("get_tensor_model_parallel_rank", 0),
        ("get_tensor_model_parallel_world_size", ranks),
    ):
        stack.enter_context(mock.patch.object(embedding, name, lambda value=value: value))
    return stack


if __name__ == "__main__":
    main()
