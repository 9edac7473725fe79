"""What follows where a model lacks what it is asked for, for each way to write it."""

from __future__ import annotations

import pytest
from trees.minivllm import source

from auditor.probes.command import discovered
from auditor.probes.document import Probe

PATH = "vllm/v1/worker/probing.py"


def probes(text: str, more: dict[str, str] | None = None) -> tuple[Probe, ...]:
    """The probes of a module of the engine, in the order of its lines."""
    document = discovered(source({PATH: text, **(more or {})}), None, every=True)
    assert document.probes is not None
    return tuple(probe for probe in document.probes if probe.path == PATH)


def method(body: str) -> str:
    """A module with one method that has this body."""
    lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
    return f"class Runner:\n    def run(self, model):\n{lines}"


CASES = {
    "a guard raises": (
        'if not hasattr(model, "x"):\n    raise ValueError("no x")',
        ("raises", "ValueError: no x"),
    ),
    "a message of parts": (
        'if not hasattr(model, "x"):\n    raise ValueError(f"{self} lacks " "x")',
        ("raises", "ValueError: {self} lacks x"),
    ),
    "an else raises": (
        'if hasattr(model, "x"):\n    model.x()\nelse:\n    raise TypeError',
        ("raises", "TypeError"),
    ),
    "a test that is kept": (
        'x = getattr(model, "x", None)\nfit = self.on and x is not None\n'
        "if not fit:\n    return self.other()\nassert x is not None",
        ("falls back", "return self.other()"),
    ),
    "the first test, deep in a block": (
        'x = getattr(model, "x", None)\nwith self.lock:\n    if x is None:\n'
        "        return self.other()\nassert x is not None",
        ("falls back", "return self.other()"),
    ),
    "None, chosen by it": (
        'x = model.x if hasattr(model, "x") else None\nif x is None:\n    raise ValueError("no x")',
        ("raises", "ValueError: no x"),
    ),
    "an item taken for lack of it": (
        'return [one for one in self.all if not hasattr(model, "x")]',
        ("falls back", "takes the item"),
    ),
    "an assertion": ('assert hasattr(model, "x")', ("raises", "AssertionError")),
    "a body is left out": (
        'if hasattr(model, "x"):\n    model.x()\nself.go()',
        ("skips", "leaves out `model.x()`"),
    ),
    "one of two must hold": (
        'if self.on and hasattr(model, "x"):\n    model.x()',
        ("skips", "leaves out `model.x()`"),
    ),
    "both must hold, denied": (
        'if not (hasattr(model, "x") and self.on):\n    raise ValueError("both")',
        ("raises", "ValueError: both"),
    ),
    "or something else": (
        'if hasattr(model, "x") or self.on:\n    model.x()',
        ("skips", "unless self.on"),
    ),
    "an else does something": (
        'if hasattr(model, "x"):\n    model.x()\nelse:\n    self.other()',
        ("falls back", "self.other()"),
    ),
    "an else only warns": (
        'if hasattr(model, "x"):\n    model.x()\nelse:\n    logger.warning("no x")',
        ("skips", "logger.warning('no x')"),
    ),
    "what stands behind a return": (
        'if hasattr(model, "x"):\n    return model.x()\nreturn self.other()',
        ("falls back", "return self.other()"),
    ),
    "an early return": (
        'if not hasattr(model, "x"):\n    return\nmodel.x()',
        ("skips", "return"),
    ),
    "an item is left out": (
        'return [one for one in self.all if hasattr(model, "x")]',
        ("skips", "leaves the item out"),
    ),
    "a choice": ('y = model.x if hasattr(model, "x") else self.y', ("falls back", "uses self.y")),
    "a choice, denied": (
        'y = self.y if not hasattr(model, "x") else model.x',
        ("falls back", "uses self.y"),
    ),
    "a default that is used": (
        'self.y = getattr(model, "x", 3) + 1',
        ("falls back", "self.y is 3"),
    ),
    "a default that is tested": (
        'if getattr(model, "x", False):\n    model.go()',
        ("skips", "leaves out `model.go()`"),
    ),
    "a default with an alternative": (
        'y = getattr(model, "x", None) or self.y',
        ("falls back", "uses self.y"),
    ),
    "a default that is compared": (
        'if getattr(model, "x", None) is None:\n    raise ValueError("none")',
        ("raises", "ValueError: none"),
    ),
    "a name that is tested": (
        'x = getattr(model, "x", None)\nif x is None:\n    return self.y\nreturn x()',
        ("falls back", "return self.y"),
    ),
    "a name that is tested before it is called": (
        'x = getattr(model, "x", None)\nif x is not None and x(self):\n    return\nself.go()',
        ("falls back", "self.go()"),
    ),
    "a name that is bound in a test": (
        'if (x := getattr(model, "x", None)) is not None:\n    x()',
        ("skips", "leaves out `x()`"),
    ),
    "a name that is not tested": (
        'x = getattr(model, "x", None)\nx.go()',
        ("raises", "AttributeError or TypeError: None in x.go"),
    ),
    "a default that is called": (
        'y = getattr(model, "x", lambda: None)()\nif y is not None:\n    self.y = y',
        ("skips", "leaves out `self.y = y`"),
    ),
    "callable": (
        'if not callable(getattr(model, "x", None)):\n    raise TypeError("call")',
        ("raises", "TypeError: call"),
    ),
    "an instance of": (
        'if isinstance(getattr(model, "x", None), dict):\n    self.go()',
        ("skips", "leaves out `self.go()`"),
    ),
    "some of them": (
        'if any(getattr(model, "x", False) for _ in self.all):\n    self.go()',
        ("skips", "leaves out `self.go()`"),
    ),
    "handed on": ('self.go(getattr(model, "x", 0))', ("falls back", "hands 0 to self.go()")),
    "a condition that is kept": (
        'self.ok = self.on and hasattr(model, "x")\nif self.ok:\n    model.x()',
        ("skips", "leaves out `model.x()`"),
    ),
    "nobody asks": ('return hasattr(model, "x")', ("undecided", "returns False")),
}


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES)
def test_what_follows(body: str, expected: tuple[str, str]) -> None:
    (probe,) = [one for one in probes(method(body)) if one.attribute == "x"]
    assert (probe.without.does, expected[1] in probe.without.text) == (expected[0], True), probe
    assert probe.asks == "model"


def test_an_attribute_is_followed_to_another_method() -> None:
    text = """
class Runner:
    def load(self, model):
        self.shares = hasattr(model, "x")

    def run(self):
        if not self.shares:
            raise RuntimeError("cannot share")
"""
    (probe,) = probes(text)
    assert (probe.without.does, probe.without.text) == ("raises", "RuntimeError: cannot share")
    assert probe.without.line == 7


def test_an_answer_is_followed_to_its_callers() -> None:
    text = """
def has_x(model):
    return hasattr(model, "x")
"""
    caller = """
from vllm.v1.worker.probing import has_x

def run(model):
    if not has_x(model):
        raise ValueError("no x")
"""
    (probe,) = probes(text, {"vllm/v1/worker/asking.py": caller})
    assert (probe.without.does, probe.without.path) == ("raises", "vllm/v1/worker/asking.py")


def test_the_place_of_what_follows_is_told() -> None:
    (probe,) = probes(method('if hasattr(model, "x"):\n    model.x()\nelse:\n    self.y()'))
    assert (probe.path, probe.line) == (PATH, 3)
    assert (probe.without.path, probe.without.line) == (PATH, 6)
    assert probe.holder == "Runner.run"
