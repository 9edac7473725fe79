"""The remarks on rows: what each is for, and what is none; and what real releases show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent, indent

import pytest
from trees.heads import HEAD, LAYERS
from trees.minivllm import (
    ARCHITECTURE,
    GUARD,
    INIT,
    MIXIN,
    RUNNER,
    SPECULATIVE,
    coverage,
    line_of,
    row_of,
)

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage, Finding, Row
from auditor.ruleset.findings import finding_rules
from auditor.sources.tree import Source

FLAT = "return self.logits_processor(self.lm_head, hidden_states)"
TOP = "return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)"
BY_STEP = "return self.logits_processor(self.heads[spec_step_idx], hidden_states)"
TOP_BY_STEP = (
    "return self.logits_processor.get_top_tokens(self.heads[spec_step_idx], hidden_states)"
)


def draft(
    tokens: str = "self, hidden_states", logits: str = "self, hidden_states", by_step: bool = False
) -> str:
    """A draft class whose methods have these parameters; no method for an empty text."""
    bodies = [
        (logits, "compute_logits", BY_STEP if by_step else FLAT),
        (tokens, "get_top_tokens", TOP_BY_STEP if by_step else TOP),
    ]
    methods = "".join(f"def {n}({p}):\n    {b}\n" for p, n, b in bodies if p)
    init = dedent("""
    def __init__(self):
        self.lm_head = nn.Linear(8, 8)
        self.heads = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.logits_processor = LogitsProcessor(8)
    """)
    body = indent(f"{init}\n{methods}", "    ")
    return f"{HEAD}\nclass Draft(nn.Module):\n{body}"


def proposer(tokens: str, logits: str = "hidden_states", guard: bool = True) -> str:
    """What drafts, by the arguments of its calls; without a call for an empty text."""
    asks = 'if not hasattr(self.model, "get_top_tokens"):\n            raise ValueError("no")'
    calls = [f"self.model.get_top_tokens({tokens})"] if tokens else []
    calls += [f"self.model.compute_logits({logits})"] if logits else []
    body = "\n        ".join(calls or ["pass"])
    return (
        f"class Proposer:\n    def load_model(self):\n        {asks if guard else 'pass'}\n"
        f"    def propose(self, hidden_states, spec_step_idx=0):\n        {body}\n"
    )


def audited(caller: str, model: str, more: Mapping[str, str] | None = None) -> Coverage:
    given = {**LAYERS, INIT: model, GUARD: caller, **(more or {})}
    return coverage(given, Request(platforms=("rocm", "cuda")))


def row(document: Coverage) -> Row:
    return row_of(document, "rocm")


def found(document: Coverage, code: str) -> list[Finding]:
    return [finding for finding in document.findings if finding.code == code]


STEP = "hidden_states, spec_step_idx=spec_step_idx"
FITS = {
    "positional": ("hidden_states", "self, hidden_states"),
    "by name": ("hidden_states=hidden_states", "self, hidden_states"),
    "a default": ("hidden_states", "self, hidden_states, spec_step_idx=0"),
    "any keyword": (STEP, "self, hidden_states, **kwargs"),
    "any argument": ("hidden_states, 1", "self, hidden_states, *rest"),
    "the step": (STEP, "self, hidden_states, spec_step_idx=0"),
}
BREAKS = {
    "no such parameter": (STEP, "self, hidden_states", "unexpected keyword argument"),
    "another name": ("states=hidden_states", "self, hidden_states", "unexpected keyword argument"),
    "too many": ("hidden_states, 1", "self, hidden_states", "takes 2 positional arguments but 3"),
    "too few": ("hidden_states", "self, hidden_states, step", "missing 1 required positional"),
    "keyword only": ("hidden_states, 1", "self, hidden_states, *, step=0", "takes 2 positional"),
    "positional only": (STEP, "self, hidden_states, spec_step_idx, /", "positional-only"),
}


@pytest.mark.parametrize(("tokens", "parameters"), FITS.values(), ids=FITS)
def test_a_call_that_fits_is_no_remark(tokens: str, parameters: str) -> None:
    document = audited(proposer(tokens), draft(parameters))
    assert row(document).verdict == "yes"
    assert found(document, "SD101") == []


@pytest.mark.parametrize(("tokens", "parameters", "says"), BREAKS.values(), ids=BREAKS)
def test_a_call_that_does_not_fit_makes_the_class_unsafe(
    tokens: str, parameters: str, says: str
) -> None:
    caller = proposer(tokens)
    document = audited(caller, draft(parameters))
    (finding,) = found(document, "SD101")
    assert says in finding.message
    assert "Draft.get_top_tokens()" in finding.message
    assert row(document).verdict == "unsafe"
    assert row(document).reason == finding.message
    assert "SD101" in row(document).findings
    where = line_of({GUARD: caller}, GUARD, "self.model.get_top_tokens(")
    assert (finding.path, finding.line) == (GUARD, where)
    assert (finding.architectures, finding.platforms) == ((ARCHITECTURE,), ("cuda", "rocm"))


def test_an_inherited_method_is_bound_as_its_own_class_defines_it() -> None:
    base = draft("self, hidden_states, spec_step_idx=0").replace("class Draft", "class Base")
    assert row(audited(proposer(STEP), f"{base}\nclass Draft(Base): pass\n")).verdict == "yes"
    narrow = "class Draft(Base):\n    def get_top_tokens(self, hidden_states):\n        " + TOP
    document = audited(proposer(STEP), f"{base}\n{narrow}\n")
    assert row(document).verdict == "unsafe"
    assert "Draft.get_top_tokens()" in found(document, "SD101")[0].message


def test_the_mixin_does_not_take_the_step() -> None:
    imported = "from vllm.model_executor.models.interfaces import LocalArgmaxMixin\n"
    model = imported + draft("", "self, hidden_states, spec_step_idx=0").replace(
        "class Draft(", "class Draft(LocalArgmaxMixin, "
    )
    document = audited(proposer(STEP, STEP), model)
    assert row(document).owner == MIXIN
    assert row(document).verdict == "unsafe"
    assert "LocalArgmaxMixin.get_top_tokens()" in found(document, "SD101")[0].message


@pytest.mark.parametrize("tokens", ["*hidden_states", "hidden_states, **self.extra"])
def test_unpacked_arguments_leave_it_open(tokens: str) -> None:
    document = audited(proposer(tokens), draft("self, hidden_states, spec_step_idx=0"))
    assert row(document).verdict == "yes?"
    assert "unpacks" in (row(document).reason or "")
    assert len(found(document, "SD106")) == 1


@pytest.mark.parametrize("mark", ["@property", "@of_our_own"])
def test_a_decorator_that_may_change_the_signature_leaves_it_open(mark: str) -> None:
    marked = draft().replace("    def get_top_tokens", f"    {mark}\n    def get_top_tokens")
    model = f"def of_our_own(function):\n    return function\n{marked}"
    assert len(found(audited(proposer(STEP), model), "SD106")) == 1
    kept = draft().replace("    def get_top_tokens", "    @torch.no_grad()\n    def get_top_tokens")
    assert len(found(audited(proposer(STEP), kept), "SD101")) == 1


def test_a_method_that_is_no_definition_leaves_it_open() -> None:
    model = draft() + "    get_top_tokens = len\n"
    document = audited(proposer("hidden_states"), model)
    assert row(document).verdict == "yes?"
    assert "could not be read" in found(document, "SD106")[0].message


def test_a_class_without_the_method_has_no_signature_to_break() -> None:
    document = audited(proposer(STEP), draft(""))
    assert row(document).verdict == "no"
    assert found(document, "SD101") == []


def test_a_dropped_step_is_unsafe_where_the_head_is_chosen_by_it() -> None:
    step = "self, hidden_states, spec_step_idx=0"
    document = audited(proposer("hidden_states", STEP), draft(step, step, by_step=True))
    assert len(found(document, "SD102")) == 1
    assert row(document).verdict == "unsafe"
    assert "first head" in (row(document).reason or "")
    flat = audited(proposer("hidden_states", STEP), draft(step, step))
    assert len(found(flat, "SD102")) == 1
    assert row(flat).verdict == "yes"


def test_a_step_that_both_get_or_neither_gets_is_not_dropped() -> None:
    step = "self, hidden_states, spec_step_idx=0"
    for tokens, logits in ((STEP, STEP), ("hidden_states", "hidden_states"),
                           ("hidden_states, spec_step_idx", STEP)):  # fmt: skip
        assert found(audited(proposer(tokens, logits), draft(step, step)), "SD102") == []


def test_a_flag_that_does_nothing() -> None:
    document = audited(proposer(""), draft())
    (finding,) = found(document, "SD103")
    assert "though it demands it at start-up" in finding.message
    assert (finding.path, finding.line) == (GUARD, 1)
    assert row(document).verdict == "yes"
    (accepted,) = found(audited(proposer("", guard=False), draft()), "SD103")
    assert "is accepted and does nothing" in accepted.message
    assert found(audited(proposer("hidden_states"), draft()), "SD103") == []


def test_a_release_without_the_flag_accepts_none() -> None:
    config = 'from typing import Literal\nSpeculativeMethod = Literal["mtp"]\n'
    more = {SPECULATIVE: f"{config}class SpeculativeConfig:\n    method: str | None = None\n"}
    document = audited(proposer("", guard=False), draft(), more)
    assert [caller.class_ for caller in document.callers] == [
        "vllm.v1.spec_decode.proposer.Proposer"
    ]
    assert found(document, "SD103") == []


def test_a_call_without_a_guard() -> None:
    document = audited(proposer("hidden_states", guard=False), draft(""))
    assert len(found(document, "SD104")) == 1
    assert found(audited(proposer("hidden_states"), draft("")), "SD104") == []


def test_a_call_of_compute_logits_that_does_not_fit() -> None:
    document = audited(proposer("hidden_states", STEP), draft())
    (finding,) = found(document, "SD105")
    assert "Draft.compute_logits()" in finding.message
    assert row(document).verdict == "yes"


def test_without_a_known_caller_nothing_is_proven() -> None:
    document = audited(proposer("hidden_states"), draft(), {RUNNER: ""})
    assert row(document).verdict == "yes?"
    assert (row(document).reason or "").startswith("it is not known what calls it")
    (item,) = [item for item in document.undecided if item.kind == "caller"]
    assert item.architectures == (ARCHITECTURE,)


def test_a_caller_that_may_not_be_chosen_makes_nothing_unsafe() -> None:
    runner = """
        from vllm.v1.spec_decode.proposer import Proposer
        from vllm.v1.spec_decode.other import Other

        class GPUModelRunner:
            def __init__(self, vllm_config):
                self.speculative_config = vllm_config.speculative_config
                if ask_the_host():
                    self.drafter = Proposer(vllm_config)
                else:
                    self.drafter = Other(vllm_config)
        """
    other = proposer("hidden_states").replace("class Proposer", "class Other")
    more = {RUNNER: runner, "vllm/v1/spec_decode/other.py": other}
    document = audited(proposer(STEP), draft(), more)
    assert row(document).verdict == "yes?"
    assert "ask_the_host" in (row(document).reason or "")
    assert len(found(document, "SD101")) == 1


def test_what_the_analysis_finds_is_a_finding() -> None:
    other = draft().replace(TOP, TOP.replace("self.lm_head", "self.heads[0]"))
    document = audited(proposer("hidden_states"), other)
    (finding,) = found(document, "SD201")
    assert "Draft.get_top_tokens: the heads differ" in finding.message
    assert row(document).findings == ("SD201",)
    conditional = draft().replace(FLAT, f"{FLAT} * self.factor")
    assert len(found(audited(proposer("hidden_states"), conditional), "SD202")) == 1
    checked = draft().replace(TOP, f"assert self.ready\n        {TOP}")
    assert "only get_top_tokens checks" in (
        found(audited(proposer("hidden_states"), checked), "SD204")[0].message
    )


def test_every_code_that_is_used_has_a_rule_and_the_reverse() -> None:
    from pathlib import Path

    import auditor.findings as of_rows
    import auditor.plugins.remarks as of_plugins

    files = (str(module.__file__) for module in (of_rows, of_plugins))
    text = "".join(Path(file).read_text() for file in files)
    for rule in finding_rules():
        assert f'"{rule.code}"' in text, rule.code
        assert rule.what.endswith(".")
        assert rule.why.endswith(".")
    codes = [rule.code for rule in finding_rules()]
    assert codes == sorted(set(codes))


# --- real releases


@pytest.fixture(scope="module")
def of_release(release: Callable[[str], Source]) -> Callable[[str], Coverage]:
    """The audit of a release on one platform, made once."""
    known: dict[str, Coverage] = {}

    def audit_of(version: str) -> Coverage:
        if version not in known:
            request = Request(platforms=("cuda",))
            known[version] = audit(release(version), request, Resources())
        return known[version]

    return audit_of


def _passing_the_step(document: Coverage) -> set[str]:
    """Architectures that a caller of the method with the step may draft for."""
    return {
        name
        for caller in document.callers
        if any("get_top_tokens(" in s.note and "spec_step_idx=" in s.note for s in caller.calls)
        for name in caller.architectures
    }


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.32.0", "0.33.0"])
def test_users_of_the_mixin_break_the_caller_that_passes_the_step(
    version: str, of_release: Callable[[str], Coverage]
) -> None:
    document = of_release(version)
    rows = {one.architecture: one for one in document.rows if one.owner == MIXIN}
    broken = rows.keys() & _passing_the_step(document)
    assert broken
    assert {n for f in found(document, "SD101") for n in f.architectures} >= broken
    assert {rows[name].verdict for name in broken} == {"unsafe"}
    others = [rows[name].verdict for name in rows.keys() - broken]
    assert "unsafe" not in others


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.30.0", "0.32.0", "0.33.0"])
def test_one_proposer_drops_the_step(version: str, of_release: Callable[[str], Coverage]) -> None:
    places = {finding.path for finding in found(of_release(version), "SD102")}
    assert places == {"vllm/v1/spec_decode/step3p5.py"}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.30.0", "0.32.0", "0.33.0"])
def test_some_drafts_have_a_speculator_that_never_calls_the_method(
    version: str, of_release: Callable[[str], Coverage]
) -> None:
    document = of_release(version)
    silent = {finding.path for finding in found(document, "SD103")}
    assert any("/dspark/" in path for path in silent)
    assert all("get_top_tokens(" not in s.note for c in document.callers if c.made.path in silent
               for s in c.calls)  # fmt: skip


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.30.0", "0.32.0", "0.33.0"])
def test_what_drafts_is_known_for_almost_every_architecture(
    version: str, of_release: Callable[[str], Coverage]
) -> None:
    document = of_release(version)
    known = {name for caller in document.callers for name in caller.architectures}
    unknown = {one.architecture for one in document.rows} - known
    assert len(unknown) <= 3
    assert not [caller for caller in document.callers if caller.open]
    listed = {n for i in document.undecided if i.kind == "caller" for n in i.architectures}
    assert listed == unknown
