"""One of two ranks that pick tokens together for real, over ``torch.distributed`` with gloo.

Plain Python with vLLM, started once a rank as a script by another interpreter than the one that
draftaudit runs in: ``ranks.py REQUEST ANSWERS``. The request is JSON: ``overlay``, ``rank``,
``meeting`` (a file that does not exist, for the two to find each other), and ``tests`` (each with
``name``, ``path``, ``step``, ``capability``, ``agrees_with``). Each answer is a line of JSON.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

WORLD = 2
STEPS = 3


def _module(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _disagreements(module: Any, test: dict[str, str], rank: int) -> tuple[int, int]:
    """Rows in which two ranks do not pick the token that the whole row of logits has first."""
    import torch

    makers = [v for k, v in sorted(vars(module).items()) if k.startswith("_make_model")]
    wrong = rows = 0
    for make in makers:
        for tied in (False, True):
            whole, own = make(512, tied=tied), make(512, rank, WORLD, tied=tied)
            for step in range(STEPS) if test["step"] else (None,):
                more: dict[str, int] = {} if step is None else {test["step"]: step}
                for count in (1, 64, 1024):
                    hidden = module._hidden_states(count)
                    logits = getattr(whole, test["agrees_with"])(hidden.clone(), **more)
                    top = getattr(own, test["capability"])(hidden, **more)
                    wrong += int(torch.sum(top != logits.argmax(dim=-1)))
                    rows += count
    return wrong, rows


def main(request_path: str, answers_path: str) -> None:
    """Ask every test's model."""
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    sys.path.insert(0, request["overlay"])
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.distributed import init_distributed_environment
    from vllm.distributed.parallel_state import initialize_model_parallel

    rank = request["rank"]
    with open(answers_path, "a", encoding="utf-8") as answers:

        def tell(**what: object) -> None:
            answers.write(json.dumps(what) + "\n")
            answers.flush()

        with set_current_vllm_config(VllmConfig()):
            init_distributed_environment(
                world_size=WORLD,
                rank=rank,
                distributed_init_method=f"file://{request['meeting']}",
                local_rank=rank,
                backend="gloo",
            )
            initialize_model_parallel(WORLD)
            for test in request["tests"]:
                tell(begin=test["name"])
                try:
                    wrong, rows = _disagreements(_module(test["name"], test["path"]), test, rank)
                except Exception as error:  # whatever it is, it is the answer
                    tell(test=test["name"], reason=f"{type(error).__name__}: {error}"[:300])
                    raise
                tell(test=test["name"], wrong=wrong, rows=rows, reason="")
        tell(end=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
