"""Two processes tell each other what they have analysed; neither waits, and none mishears."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trees.heads import IMPORTS, LAYERS
from trees.minivllm import REGISTRY, WITH_METHOD, registry, source, write

from auditor.analysis import Analysis
from auditor.analyzer import Analyzer
from auditor.answers import Study
from auditor.api import Request, Resources, audit
from auditor.coverage import to_json
from auditor.headpath.bodies import Syntax
from auditor.headpath.questions import fingerprint
from auditor.headpath.terms import Constant, Operation, Term
from auditor.job import Job
from auditor.processes import Log, two_logs
from auditor.program import Files
from auditor.ruleset.capabilities import capability
from auditor.sharing import Analyses
from auditor.sources.open import open_source
from auditor.sources.tree import MemoryTree, Source
from auditor.values import ClassValue, Place, Undecided

pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="without shared memory each process has its own"
)


def end_of(log: Log) -> Log:
    """The same log as another process has it after a fork."""
    return copy.copy(log)


def test_messages_arrive_in_order_and_once() -> None:
    log = Log()
    there = end_of(log)
    assert there.read() == []
    log.write(b"one")
    log.write(b"")
    assert there.read() == [b"one", b""]
    log.write(b"two" * 100_000)
    assert there.read() == [b"two" * 100_000]
    assert there.read() == []
    log.close()


def test_a_message_that_is_half_there_comes_when_it_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log()
    there = end_of(log)
    real = os.pwrite
    for half in (4, 10):
        monkeypatch.setattr(os, "pwrite", lambda f, data, at, n=half: real(f, data[:n], at) and 99)
        log.write(b"message")
        assert there.read() == []
        monkeypatch.undo()
        log = end_of(there)
        log.write(b"message")
        assert there.read() == [b"message"]
        log = end_of(there)


@pytest.mark.parametrize("failing", ["short", "error"])
def test_nothing_follows_a_message_that_could_not_be_written(
    monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    log = Log()
    there = end_of(log)
    real = os.pwrite

    def full(file: int, data: bytes, at: int) -> int:
        if failing == "error":
            raise OSError("no memory left")
        return real(file, data[:10], at)

    log.write(b"before")
    monkeypatch.setattr(os, "pwrite", full)
    log.write(b"cut short")
    monkeypatch.undo()
    log.write(b"after")
    assert there.read() == [b"before"]


def test_without_shared_memory_there_are_no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> int:
        raise OSError(f"no {name}")

    monkeypatch.setattr(os, "memfd_create", refused)
    assert two_logs() is None
    monkeypatch.delattr(os, "memfd_create")
    assert two_logs() is None


def studied(tree: Path, platform: str = "cuda") -> tuple[Study, Files]:
    """A run of a mini vLLM on one platform, and its files with nothing asked of them yet."""
    seen: list[Study] = []

    def look(study: Study) -> bytes:
        seen.append(study)
        return b""

    opened = open_source(str(tree), cwd=tree)
    files = Files(opened.tree)
    Job(opened, Request(platforms=(platform,)), files, look=look).run(1)
    return seen[0], Files(opened.tree)


def test_what_the_other_process_has_analysed_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"vllm/models/draft/__init__.py": WITH_METHOD}
    mine = studied(write(tmp_path / "one", files))
    theirs = studied(write(tmp_path / "other", files))
    asked = capability("get_top_tokens")
    logs = two_logs()
    assert logs is not None
    here, _ = Analyses().in_two(logs, mine[1])
    _, there = Analyses().in_two((end_of(logs[0]), end_of(logs[1])), theirs[1])

    def analysed(study: Study, files: Files, analyses: Analyses) -> Analysis:
        (cls,) = study.classes.values()
        analysis = Analyzer(study.run, Syntax(files), {}, asked, analyses).analyse(cls)
        assert analysis.cls is cls
        return analysis

    made = analysed(*theirs, there)
    assert made.equivalence is not None

    def refused(*_: object) -> None:
        raise AssertionError("analysed twice")

    monkeypatch.setattr(Analyzer, "_analyse", refused)
    taken = analysed(*mine, here)
    assert (taken.logits, taken.tokens) == (made.logits, made.tokens)
    assert (taken.shape, taken.equivalence) == (made.shape, made.equivalence)
    # What was read for it counts as read here too, or a kept answer would outlive an edit of it.
    assert mine[1].probes() == theirs[1].probes() != {}
    with pytest.raises(AssertionError, match="analysed twice"):
        analysed(*mine, Analyses())


def test_an_analysis_that_adds_to_its_run_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, files = studied(write(tmp_path, {"vllm/models/draft/__init__.py": WITH_METHOD}))
    logs = two_logs()
    assert logs is not None
    heard = end_of(logs[0])
    here, _ = Analyses().in_two(logs, files)
    (cls,) = study.classes.values()
    analyse = Analyzer._analyse

    def asking(self: Analyzer, cls: ClassValue) -> Analysis:
        self.bodies.run.note_condition(Undecided("open", Place("vllm/other.py", 1), "condition"))
        return analyse(self, cls)

    monkeypatch.setattr(Analyzer, "_analyse", asking)
    asked = capability("get_top_tokens")
    made = Analyzer(study.run, Syntax(files), {}, asked, here).analyse(cls)
    assert heard.read() == []
    monkeypatch.undo()
    # It is kept here, and one that adds nothing is told.
    assert Analyzer(study.run, Syntax(files), {}, asked, here).analyse(cls) is made
    again, _ = Analyses().in_two(logs, files)
    Analyzer(study.run, Syntax(files), {}, asked, again).analyse(cls)
    assert len(heard.read()) == 1


DRAFT = """
from vllm.platforms import current_platform
import torch.nn as nn

def one(self, hidden_states):
    return None

def other(self, hidden_states):
    return None

class Draft(nn.Module):
    {body}

    def compute_logits(self, hidden_states):
        return None

{after}
"""


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("if current_platform.is_rocm(): exec(open('x').read())", ""),
        ("pass", "if current_platform.is_rocm(): del Draft.compute_logits"),
        (
            "pass",
            "if current_platform.is_rocm():\n    Draft.more = one\nelse:\n    Draft.more = other",
        ),
    ],
)
def test_classes_that_look_alike_by_name_alone_are_told_apart(
    body: str, after: str, tmp_path: Path
) -> None:
    model = DRAFT.format(body=body, after=after)
    tree = write(tmp_path, {"vllm/models/draft/__init__.py": model})
    cuda, rocm, again = (
        fingerprint(cls)
        for platform in ("cuda", "rocm", "rocm")
        for cls in studied(tree, platform)[0].classes.values()
    )
    assert cuda != rocm
    assert rocm == again


PROCESSOR = """
def mark(cls):
    if torch.unknown == "{name}":
        known = 1
    return cls

@mark
class Processor(LogitsProcessor):
    pass

class Draft(nn.Module):
    def __init__(self, vllm_config):
        super().__init__()
        self.logits_processor = Processor(8)
        self.lm_head = ParallelLMHead(8, 8)

    def compute_logits(self, hidden_states):
        hidden = hidden_states
        {long}
        return self.logits_processor(self.lm_head, hidden)

    def get_top_tokens(self, hidden_states):
        return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
"""
#: So long that the second process has analysed some classes before the first asks for them.
LONG = "\n        ".join(f"hidden = hidden + {number}" for number in range(60))


FOREIGN = """
class Draft(nn.Module):
    def __init__(self, vllm_config):
        super().__init__()
        self.logits_processor = LogitsProcessor(8)
        self.lm_head = ParallelLMHead(8, 8)

    def compute_logits(self, hidden_states):
        logits = self.logits_processor(self.lm_head, hidden_states)
        return logits + torch.arange(8, device=logits.device)

    def get_top_tokens(self, hidden_states):
        return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
"""


def test_what_asks_for_a_function_outside_the_tree_is_analysed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    analysed: list[str] = []
    analyse = Analyzer._analyse

    def counted(self: Analyzer, cls: ClassValue) -> Analysis:
        analysis = analyse(self, cls)
        assert ("torch", "arange") in self.bodies.asked
        analysed.append(cls.dotted)
        return analysis

    monkeypatch.setattr(Analyzer, "_analyse", counted)
    given = {**LAYERS, "vllm/models/draft/__init__.py": IMPORTS + FOREIGN}
    coverage = audit(source(given), Request(), Resources(None, 1))
    assert len(coverage.platforms) > 1
    assert analysed == ["vllm.models.draft.Draft"]


def test_what_is_seen_of_a_module_outside_the_tree_is_nothing(tmp_path: Path) -> None:
    given = {**LAYERS, "vllm/models/draft/__init__.py": IMPORTS + FOREIGN}
    study, files = studied(write(tmp_path, given))
    bodies = Analyzer(study.run, Syntax(files), {}, capability("get_top_tokens")).bodies
    for module in ("torch", "vllm.not_loaded"):
        assert bodies.answers_alike({(module, "arange"): fingerprint(None)})
        assert not bodies.answers_alike({(module, "arange"): ("function", "a.py", "arange", 1)})


@pytest.mark.parametrize("platforms", [("rocm",), ("cuda", "rocm")])
def test_what_an_analysis_leaves_open_is_told_whoever_makes_it(platforms: tuple[str, ...]) -> None:
    names = [f"draft{number}" for number in range(12)]
    given = dict(LAYERS)
    for name in names:
        given[f"vllm/models/{name}.py"] = IMPORTS + PROCESSOR.format(name=name, long=LONG)
    given[REGISTRY] = registry({name: (f"vllm.models.{name}", "Draft") for name in names})
    request = Request(platforms=platforms)
    one, *others = (audit(source(given), request, Resources(None, n)) for n in (1, 2, 2, 2))
    texts = {item.text for item in one.undecided}
    assert texts >= {f'torch.unknown == "{name}"' for name in names}
    assert [to_json(other) for other in others] == [to_json(one)] * 3


def test_an_analysis_that_is_nested_too_deeply_to_be_told_is_kept_all_the_same() -> None:
    logs = two_logs()
    assert logs is not None
    ends = end_of(logs[0]), end_of(logs[1])
    files = Files(MemoryTree({"a.py": b"", "b.py": b""}))
    here, _ = Analyses().in_two(logs, files)
    files.note("a.py", ("text", "", 0, 0, 0))
    term: Term = Constant(1)
    for _ in range(sys.getrecursionlimit()):
        term = Operation("+", (term,))
    deep, flat = (
        Analysis(None, one, None, None, None)  # type: ignore[arg-type]
        for one in (term, Constant(1))
    )
    here.add("deep", {}, deep)
    assert ends[0].read() == []
    assert [analysis for _, analysis in here.of("deep")] == [deep]
    files.note("b.py", ("text", "", 0, 0, 0))
    here.add("flat", {}, flat)
    other = Files(MemoryTree({}))
    _, there = Analyses().in_two(ends, other)
    assert len(list(there.of("flat"))) == 1
    assert set(other.probes()) == {"a.py", "b.py"}


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("imports", [True, False])
@pytest.mark.parametrize("platforms", [(), ("rocm",)])
def test_a_real_release_has_the_same_bytes_in_one_process_and_in_two(
    release: Callable[[str], Source], platforms: tuple[str, ...], imports: bool
) -> None:
    request = Request(platforms=platforms, run_imports=imports)
    one, two = (
        to_json(audit(release("0.31.0"), request, Resources(None, number))) for number in (1, 2)
    )
    assert one == two
