"""Where the engine probes a model, and the sentence that it raises."""

from __future__ import annotations

import pytest
from trees.minivllm import GUARD, files, line_of

from auditor.engine import GuardSite, guard_sites
from auditor.program import Files
from auditor.sources.tree import MemoryTree

HEAD = "class Proposer:\n    def load_model(self):\n"


def _sites(guard: str, path: str = GUARD) -> tuple[GuardSite, ...]:
    given = files({GUARD: "", path: guard})
    tree = MemoryTree(given)
    return guard_sites(Files(tree), tree.files(), "vllm/v1/", "get_top_tokens")


def _in_method(*lines: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in lines)


SENTENCES = [
    ('raise ValueError("no get_top_tokens")', "ValueError: no get_top_tokens"),
    ('raise ValueError(f"{type(model).__name__} lacks it")', "ValueError: Draft lacks it"),
    ('raise ValueError(f"{self.model.__class__.__name__} " "lacks it")',
     "ValueError: Draft lacks it"),
    ('raise RuntimeError(f"{self.method} lacks it")', "RuntimeError: {self.method} lacks it"),
    ('raise errors.Unsupported("no")', "errors.Unsupported: no"),
    ("raise ValueError(MESSAGE)", "ValueError: MESSAGE"),
    ("raise ValueError()", "ValueError: "),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "sentence"), SENTENCES)
def test_the_sentence_names_the_class(statement: str, sentence: str) -> None:
    guard = _in_method('if not hasattr(self.model, "get_top_tokens"):', f"    {statement}")
    (site,) = _sites(guard)
    assert site.sentence("Draft") == sentence
    assert (site.where.path, site.where.line) == (GUARD, line_of({GUARD: guard}, GUARD, "hasattr"))


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_guard_may_do_more_than_raise(quote: str) -> None:
    guard = _in_method(
        f"if not hasattr(model, {quote}get_top_tokens{quote}):",
        "    logger.error('no')",
        "    raise ValueError('no')",
    )
    assert [site.sentence("X") for site in _sites(guard)] == ["ValueError: no"]


NO_GUARDS = {
    "it asks for another method": 'if not hasattr(model, "get_top"):\n            raise ValueError',
    "it raises where the method is there": 'if hasattr(model, "get_top_tokens"):\n'
    "            raise ValueError('no')",
    "it does not raise": 'if not hasattr(model, "get_top_tokens"):\n            return None',
    "the name is in a comment": '# if not hasattr(model, "get_top_tokens"):\n        pass',
    "it is an assertion": 'assert hasattr(model, "get_top_tokens")',
    "it does not parse": 'if not hasattr(model, "get_top_tokens"):',
}


@pytest.mark.parametrize("text", NO_GUARDS.values(), ids=NO_GUARDS)
def test_what_is_no_guard(text: str) -> None:
    assert _sites(_in_method(text)) == ()


def test_only_the_engine_is_searched() -> None:
    guard = _in_method('if not hasattr(m, "get_top_tokens"):', "    raise ValueError('no')")
    assert _sites(guard, "vllm/worker/model_runner.py") == ()
    assert _sites(guard, "vllm/v1/notes.txt") == ()
    assert len(_sites(guard, "vllm/v1/worker/gpu/speculator.py")) == 1


def test_the_places_come_in_order_of_path() -> None:
    guard = _in_method('if not hasattr(m, "get_top_tokens"):', "    raise ValueError('no')")
    paths = [f"vllm/v1/{name}.py" for name in "cab"]
    tree = MemoryTree(files(dict.fromkeys(paths, guard)))
    sites = guard_sites(Files(tree), tree.files(), "vllm/v1/", "get_top_tokens")
    found = [site.where.path for site in sites]
    assert found == [*sorted(paths), GUARD]
