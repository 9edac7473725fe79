"""Whether what the engine asks is a model, a part of one, or something else."""

from __future__ import annotations

import pytest

from .test_consequences import probes

IMPORTS = """
import torch.nn as nn
from typing import cast
from vllm.config import VllmConfig
from vllm.model_executor.model_loader import get_model
from vllm.model_executor.layers.attention import Attention
"""

CASES = {
    "what a maker gives": (
        "def f(config):\n    m = get_model(config)\n    hasattr(m, 'x')",
        "model",
    ),
    "the same through a cast": (
        "def f(config):\n    m = cast(nn.Module, get_model(config))\n    hasattr(m, 'x')",
        "model",
    ),
    "a parameter by name and annotation": (
        "def f(draft_model: nn.Module):\n    hasattr(draft_model, 'x')",
        "model",
    ),
    "a parameter by its name": ("def f(model):\n    hasattr(model, 'x')", "model"),
    "a model that is given a second time": (
        "def f(model):\n    if model.inner:\n        model = model.inner\n    hasattr(model, 'x')",
        "model",
    ),
    "a part": ("def f(model):\n    hasattr(model.model, 'x')", "part"),
    "a part by a default": (
        "def f(model):\n    i = getattr(model, 'model', None)\n    hasattr(i, 'x')",
        "part",
    ),
    "a submodule": (
        "def f(model):\n    for name, one in model.named_modules():\n        hasattr(one, 'x')",
        "part",
    ),
    "an item of a list of parts": (
        "def f(model):\n    for i, one in enumerate(model.layers):\n        hasattr(one, 'x')",
        "part",
    ),
    "a module of another name": ("def f(layer: nn.Module):\n    hasattr(layer, 'x')", "part"),
    "a layer": ("def f(one: Attention):\n    hasattr(one, 'x')", "part"),
    "a parameter that callers hand a model": (
        "def f(thing):\n    hasattr(thing, 'x')\n\ndef g(model):\n    f(model)",
        "model",
    ),
    "a parameter that callers hand something else": (
        "def f(thing):\n    hasattr(thing, 'x')\n\ndef g():\n    f(3)",
        "other",
    ),
    "a parameter of which nothing is known": (
        "def f(thing):\n    hasattr(thing, 'x')",
        "undecided",
    ),
    "an attribute that is stored": (
        "class A:\n    def load(self, config):\n        self.net = get_model(config)\n\n"
        "    def run(self):\n        hasattr(self.net, 'x')",
        "model",
    ),
    "an attribute that a base stores": (
        "class B:\n    def load(self, config):\n        self.net = get_model(config)\n\n"
        "class A(B):\n    def run(self):\n        hasattr(self.net, 'x')",
        "model",
    ),
    "an attribute of which nothing is known": (
        "class A:\n    def run(self):\n        hasattr(self.net, 'x')",
        "undecided",
    ),
    "what a function of the engine returns": (
        "def inner(model):\n    return model.of\n\ndef f(model):\n    hasattr(inner(model), 'x')",
        "part",
    ),
    "the engine itself": ("class A:\n    def run(self):\n        hasattr(self, 'x')", "other"),
    "a configuration": ("def f(model_config):\n    hasattr(model_config, 'x')", "other"),
    "the configuration of a model": ("def f(model):\n    hasattr(model.config, 'x')", "other"),
    "a runner": ("class A:\n    def run(self):\n        hasattr(self.model_runner, 'x')", "other"),
    "another class": ("def f(one: VllmConfig):\n    hasattr(one, 'x')", "other"),
    "an imported module": ("import torch\n\ndef f():\n    hasattr(torch.ops, 'x')", "other"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_what_is_asked(text: str, expected: str) -> None:
    (probe,) = [one for one in probes(f"{IMPORTS}\n{text}\n") if one.attribute == "x"]
    assert probe.asks == expected, probe.because
    assert probe.because
