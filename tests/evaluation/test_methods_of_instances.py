"""What a method of an instance does while a module loads: it raises, patches, registers."""

from __future__ import annotations

import pytest
from trees.minivllm import INIT, Answer, coverage, fails, has, lacks, row_of

from auditor.request import Request

CLS = "vllm.models.draft.Draft"
PATCHES = "cls.get_top_tokens = lambda self: None"
METHOD = "    def get_top_tokens(self, hidden_states): pass\n"


def answer(registry: str, use: str, body: str = "    pass\n") -> Answer:
    """The row of a class that a registry is asked to do something with."""
    draft = f"class Draft:\n    def compute_logits(self): pass\n{body}"
    text = f"{registry}\nregistry = Registry()\n{draft}{use}\n"
    return Answer.of(row_of(coverage({INIT: text}, Request(platforms=("cuda",))), "cuda"))


def registry(*lines: str, call: str = "register(self, cls)") -> str:
    body = "\n".join(f"        {line}" for line in lines)
    return f"class Registry:\n    shared = {{}}\n    def {call}:\n{body}\n"


@pytest.mark.parametrize(
    ("given", "use"),
    [
        (registry(PATCHES), "registry.register(Draft)"),
        (registry(PATCHES), "Registry().register(cls=Draft)"),
        (registry(PATCHES, call="__call__(self, cls)"), "registry(Draft)"),
        (registry("def wrap(cls):", f"    {PATCHES}", "    return cls", "return wrap",
                  call="register(self)"), "Draft = registry.register()(Draft)"),
        (f"{registry(PATCHES)}    def all(self, cls): self.register(cls)\n", "registry.all(Draft)"),
        (registry(PATCHES), "def later(cls):\n    Registry().register(cls)\nlater(Draft)"),
        (registry("self.shared['x'] = cls"),
         "registry.register(Draft)\nif Registry.shared:\n    Draft.get_top_tokens = None"),
        (f"class Base:\n    def register(self, cls): {PATCHES}\nclass Registry(Base): pass\n",
         "registry.register(Draft)"),
    ],
    ids=["patches", "made and called", "call", "wraps", "one calls another", "in a function",
         "a shared dict", "inherited"],
)  # fmt: skip
def test_a_method_that_gives_the_class_its_method(given: str, use: str) -> None:
    assert answer(given, use) == has(CLS)
    assert answer(given, "") == lacks(CLS)


def test_a_method_that_refuses_the_class() -> None:
    refuses = registry("if not hasattr(cls, 'get_top_tokens'):", "    raise ValueError('refused')")
    assert answer(refuses, "registry.register(Draft)") == fails("ValueError", "refused")
    assert answer(refuses, "registry.register(Draft)", METHOD) == has(CLS)


def test_a_method_that_does_not_fit_the_call() -> None:
    message = "Registry.register() missing 1 required positional argument: 'cls'"
    assert answer(registry("pass"), "registry.register()") == fails("TypeError", message)


@pytest.mark.parametrize(
    "given",
    [
        registry("for _ in self.steps():", f"    {PATCHES}"),
        f"class Registry:\n    @foreign\n    def register(self, cls):\n        {PATCHES}\n",
        registry("if self.ready:", f"    {PATCHES}"),
    ],
    ids=["an unknown number of times", "decorated", "by an attribute"],
)
def test_what_a_method_may_do_leaves_the_class_open(given: str) -> None:
    given = f"from torch import foreign\n{given}"
    assert answer(given, "registry.register(Draft)").verdict == "?"


@pytest.mark.parametrize(
    ("given", "use"),
    [
        (f"class Registry:\n    @property\n    def x(self): {PATCHES}\n", "registry.x"),
        (f"{registry('raise ValueError')}    def __new__(cls): return None\n", ""),
        (f"{registry('self.shared[1] = 2')}    def __init__(self): self.shared = {{}}\n",
         "registry.register(Draft)\nif Registry.shared:\n    raise ValueError"),
    ],
    ids=["a property", "another object", "a dict of its own"],
)  # fmt: skip
def test_what_is_no_method_of_the_class_is_not_run(given: str, use: str) -> None:
    assert answer(given, use) == lacks(CLS)
