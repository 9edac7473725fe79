"""Run by an interpreter that has vLLM: do the two methods of flat draft classes pick one token?

Reads a JSON list of dotted classes from standard input; writes, for each, whether the tokens are
the same with a table and without, or why it could not be tried. Instances are made without
``__init__``: only a head, a logits processor, a table and a config are set.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

HIDDEN, DRAFT, TARGET, ROWS = 16, 40, 96, 8


def _parallel() -> None:
    """A world of one rank."""
    from vllm.distributed import init_distributed_environment, initialize_model_parallel

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29577")
    init_distributed_environment(1, 0, "env://", 0, "gloo")
    initialize_model_parallel(1, 1)


def _head() -> Any:
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    head = ParallelLMHead(DRAFT, HIDDEN, params_dtype=torch.float32)
    nn.init.normal_(head.weight)
    head.quant_method.process_weights_after_loading(head)
    return head


def _model(dotted: str, with_table: bool) -> Any:
    from vllm.model_executor.layers.logits_processor import LogitsProcessor

    module, _, name = dotted.rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    model = cls.__new__(cls)
    nn.Module.__init__(model)
    size = TARGET if with_table else DRAFT
    model.config = SimpleNamespace(draft_vocab_size=DRAFT, vocab_size=size)
    model.lm_head = _head()
    model.logits_processor = LogitsProcessor(DRAFT)
    table = torch.sort(torch.randperm(TARGET)[:DRAFT]).values - torch.arange(DRAFT)
    model.draft_id_to_target_id = nn.Parameter(table, requires_grad=False) if with_table else None
    return model


def _same(dotted: str, with_table: bool) -> bool | str:
    try:
        model = _model(dotted, with_table)
        hidden = torch.randn(ROWS, HIDDEN)
        logits = model.compute_logits(hidden).argmax(dim=-1)
        return bool(torch.equal(logits, model.get_top_tokens(hidden)))
    except Exception as error:  # noqa: BLE001 - told to the test, which judges it
        return f"{type(error).__name__}: {error}"


def main() -> None:
    """Answer for every class asked for."""
    from vllm.config import VllmConfig, set_current_vllm_config

    torch.manual_seed(20)
    asked = json.load(sys.stdin)
    with set_current_vllm_config(VllmConfig()), torch.no_grad():
        _parallel()
        answers = {
            dotted: {str(table): _same(dotted, table) for table in (False, True)}
            for dotted in asked
        }
    sys.stdout.write("\n" + json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
