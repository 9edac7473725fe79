"""A script for a Python with vLLM: what its override makes of each bare configuration.

``live_override.py CONFIGS ANSWERS``: a JSON list, and one JSON list a line.
"""

from __future__ import annotations

import copy
import json
import sys
from typing import Any


def bare(given: dict[str, Any]) -> Any:
    """A bare configuration; a nested object that is a configuration itself is one as well."""
    from transformers import PreTrainedConfig  # type: ignore[import-not-found,unused-ignore]

    def nested(key: str, value: Any) -> bool:
        return isinstance(value, dict) and (
            key == "text_config" or isinstance(value.get("model_type"), str)
        )

    return PreTrainedConfig(**{k: bare(v) if nested(k, v) else v for k, v in given.items()})


def answer(given: dict[str, Any]) -> list[Any]:
    """Architectures, number of predictions and model type; or the exception."""
    from vllm.config.speculative import (  # type: ignore[import-not-found,unused-ignore]
        SpeculativeConfig,
    )

    try:
        config = bare(copy.deepcopy(given))
    except Exception as error:  # noqa: BLE001 - whatever Python raises is the answer
        return ["not made", type(error).__name__]
    try:
        made = SpeculativeConfig.hf_config_override(config)
        held = vars(made)
        read = [held.get(key) for key in ("architectures", "n_predict", "model_type")]
        return ["made", *(json.loads(json.dumps(one, default=lambda _: "?")) for one in read)]
    except Exception as error:  # noqa: BLE001 - whatever Python raises is the answer
        return ["raised", type(error).__name__, str(error)]


def main() -> None:
    """Answer every configuration, one line each."""
    with open(sys.argv[1], encoding="utf-8") as file:
        configs = json.load(file)
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        for config in configs:
            out.write(json.dumps(answer(config)) + "\n")


if __name__ == "__main__":
    main()
