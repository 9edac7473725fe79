"""Random method bodies, run by Python over a toy tensor algebra and by the evaluator over terms.

What Python returns is what the term of the branch that holds says, unless it says unknown. Equal
terms therefore mean equal results.
"""

from __future__ import annotations

from contextlib import nullcontext
from textwrap import indent
from types import SimpleNamespace
from typing import Any

from headpath.toys import Layer, Named, Reader, Same, Tensor, mixed
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from trees.heads import IMPORTS, LAYERS
from trees.minivllm import source

from auditor.api import Request
from auditor.headpath.bodies import SourceBodies, Syntax
from auditor.headpath.state import Outcome
from auditor.headpath.symbolic import Symbolic
from auditor.headpath.terms import unknowns
from auditor.imports import ImportRun
from auditor.job import Job
from auditor.program import Files
from auditor.ruleset.heads import head_rule
from auditor.values import ClassValue

#: Without shrinking: the failing bodies are short as they are, and each try builds a tree.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
NAMES = ("h", "x", "y")
INIT = """
def __init__(self, config):
    self.norm = RMSNorm(8)
    self.mixer = nn.Linear(8, 8)
    self.layers = nn.ModuleDict({str(i): Layer() for i in range(2)})
    self.flag = config.flag
    self.other = None
    self.slot = config.slot
    self.pre = nn.Identity()
    self.tied = self.norm
{more}

def more(self):
    self.pre = RMSNorm(8)

def put(self, value):
    self.slot = value

def load(self, other):
    self.other = other

def helper(self, x):
    if self.flag:
        return self.norm(x)
    return x

def twice(self, x, other=None):
    if other is None:
        other = x
    return x + other

def mask(self, x):
    x.fill_(1)

def through_view(self, x):
    seen = x.view(-1)
    seen.add_(3)
    return x
"""
#: What else ``__init__`` may do: attributes set in every form, aliases of what is replaced.
FORMS = (
    "self.pre = {made}", "self.x = self.pre = {made}", "self.x, self.pre = 1, {made}",
    "setattr(self, 'pre', {made})", "self.add_module('pre', {made})", "self.more()",
    "renew(self)",
    "self.__dict__['pre'] = {made}", "vars(self).update(pre={made})",
    "for self.pre in [{made}]: pass",
    "try:\n    raise KeyError\nexcept KeyError:\n    self.pre = {made}",
    "match 1:\n    case 1:\n        self.pre = {made}",
    "pre = nn.Identity()\npre, _ = {made}, 1\nself.pre = pre",
    "self.norm = {made}", "self.tied = self.mixer", "self.x = self.norm = {made}",
    "self.other = {made}",
    "with held({made}) as self.pre: pass", "object.__setattr__(self, 'norm', {made})",
)  # fmt: skip
LAYER = """
def renew(model):
    model.pre = RMSNorm(8)

class Layer(nn.Module):
    def __init__(self):
        self.norm = RMSNorm(8)
"""

#: How a method may set an attribute, or change a part in place.
PUTS = (
    "setattr(self, 'slot', {})", "self.__dict__['slot'] = {}", "vars(self)['slot'] = {}",
    "put(self, {})", "Draft.put(self, {})", "self.put(*[{}])", "_ = [self.put({}) for _ in (1,)]",
    "(lambda: self.put({}))()", "self.tied.weight.add_({})", "self.norm.weight[0] = 7 # {}",
    "self.norm.weight += {}", "weight = self.norm.weight; weight.add_({})",
    "touch(self.norm.weight) # {}",
    "self.layers['0'].norm = self.mixer # {}", "super(Draft, self).put({})", "put([self], {})",
    "self.pre = self.mixer # {}", "del self.slot; self.slot = {}",
)  # fmt: skip


def conditions() -> st.SearchStrategy[str]:
    """Conditions over attributes and a parameter."""
    plain = st.sampled_from(["self.flag", "self.other is None", "step == 0", "step == 1"])
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            inner.map(lambda c: f"not ({c})"),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
                lambda t: f"({t[0]}) {t[1]} ({t[2]})"
            ),
        ),
        max_leaves=3,
    )


def tensors() -> st.SearchStrategy[str]:
    """Expressions that are tensors."""
    unary = st.sampled_from(
        [
            "self.norm({})", "self.mixer({})", "self.helper({})", "self.twice({})", "{}.view(-1)",
            "{}.clone()", "kernel({}, self.norm.weight)", "self.layers[str(step % 2)].norm({})",
            "self.pre({})", "self.tied({})", "self.pre(self.tied({}))",
            "({} * 2)", "self.through_view({})", "{}.fill_(4)", "(y := {})", "({}, h)[0]",
        ]
    )  # fmt: skip
    binary = st.sampled_from(["({} + {})", "self.twice({}, other={})"])
    return st.recursive(
        st.sampled_from([*NAMES, "self.slot"]),
        lambda inner: st.one_of(
            st.tuples(unary, inner).map(lambda t: t[0].format(t[1])),
            st.tuples(binary, inner, inner).map(lambda t: t[0].format(t[1], t[2])),
            st.tuples(inner, conditions(), inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        ),
        max_leaves=4,
    )


def statements() -> st.SearchStrategy[str]:
    """Statements, some of them with statements inside."""
    name = st.sampled_from(NAMES)
    plain = st.one_of(
        st.tuples(name, tensors()).map(lambda t: f"{t[0]} = {t[1]}"),
        st.tuples(name, tensors()).map(lambda t: f"{t[0]} += {t[1]}"),
        name.map(lambda n: f"{n}.fill_(2)"),
        name.map(lambda n: f"{n}[0] = 5"),
        name.map(lambda n: f"self.mask({n})"),
        name.map(lambda n: f"self.slot = {n}"),
        name.map(lambda n: f"{n} = self.slot"),
        name.map(lambda n: f"touch({n})"),
        name.map(lambda n: f"_ = touch({n})"),
        name.map(lambda n: f"_ = 1 < touch({n}).data[0] < 3"),
        st.tuples(st.sampled_from(PUTS), name).map(lambda t: t[0].format(t[1])),
        st.tuples(name, name).map(lambda t: f"{t[0]}, {t[1]} = {t[1]}, {t[0]}"),
        name.map(lambda n: f"for _ in range(2):\n    {n} = self.norm({n})"),
        conditions().map(lambda c: f"assert {c}"),
        tensors().map(lambda t: f"return {t}"),
    )
    return st.recursive(
        plain,
        lambda inner: st.tuples(
            conditions(), st.lists(inner, min_size=1, max_size=2), st.lists(inner, max_size=2)
        ).map(_branching),
        max_leaves=4,
    )


def _branching(parts: tuple[str, list[str], list[str]]) -> str:
    condition, body, orelse = parts
    text = f"if {condition}:\n{indent(chr(10).join(body), '    ')}"
    return f"{text}\nelse:\n{indent(chr(10).join(orelse), '    ')}" if orelse else text


def bodies() -> st.SearchStrategy[str]:
    """A method body that ends by returning a tensor."""
    return st.tuples(st.lists(statements(), max_size=4), tensors()).map(
        lambda t: "\n".join(["x = h.clone()", "y = h", *t[0], f"return {t[1]}"])
    )


def initials() -> st.SearchStrategy[str]:
    """More of ``__init__``."""
    made = st.sampled_from(["RMSNorm(8)", "nn.Linear(8, 8)", "nn.Identity()"])
    form = st.tuples(st.sampled_from(FORMS), made).map(lambda t: t[0].format(made=t[1]))
    return st.lists(form, max_size=2).map("\n".join)


def _module(texts: list[str], more: str) -> str:
    init = INIT.replace("{more}", indent(more, "    "))
    methods = "".join(
        f"\ndef m{number}(self, h, step):\n{indent(text, '    ')}\n"
        for number, text in enumerate(texts)
    )
    return f"{LAYER}\nclass Draft(nn.Module):\n{indent(init + methods, '    ')}"


def _symbolic(module: str) -> Symbolic:
    tree = source({**LAYERS, "vllm/models/draft/__init__.py": f"{IMPORTS}\n{module}"})
    job = Job(tree, Request(platforms=("cpu",)), Files(tree.tree))
    run = ImportRun(job.program, next(iter(job.platforms)), job.conventions)
    value, _ = run.get(run.load("vllm.models.draft"), "Draft", [])
    assert isinstance(value, ClassValue)
    return Symbolic(value, SourceBodies(run, Syntax(job.files)), head_rule())


class _Base:
    """Stands for ``nn.Module``."""

    def add_module(self, name: str, module: object) -> None:
        setattr(self, name, module)

    def put(self, value: Tensor) -> None:
        self.slot = mixed("put", value)


def _put(model: Any, value: Tensor) -> None:
    (model[0] if isinstance(model, list) else model).slot = value


class _Config:
    def __init__(self, flag: bool) -> None:
        self.flag = flag
        self.slot = mixed("slot")


def _made(module: str, flag: bool, other: Tensor | None) -> Any:
    layers = {str(number): Layer(number) for number in range(2)}
    space: dict[str, Any] = {
        "nn": SimpleNamespace(
            Module=_Base,
            Linear=lambda *_: Named("mixer"),
            ModuleDict=lambda _: layers,
            Identity=Same,
        ),
        "RMSNorm": lambda _: Named("norm"),
        "kernel": lambda *inputs: mixed("kernel", *inputs),
        "touch": lambda tensor: tensor.fill_(9),
        "put": _put,
        "held": nullcontext,
    }
    exec(module, space)  # text that this test has written
    model = space["Draft"](_Config(flag))
    model.load(other)
    return model


def _holding(outcomes: tuple[Outcome, ...], reader: Reader) -> list[Outcome]:
    return [
        outcome
        for outcome in outcomes
        if all(bool(reader.read(guard.test)) is guard.holds for guard in outcome.state.guards)
    ]


def _is_known(outcome: Outcome) -> bool:
    tests = [guard.test for guard in outcome.state.guards]
    values = [] if outcome.value is None else [outcome.value]
    return not any(map(unknowns, [*tests, *values]))


def _check(module: str, outcomes: tuple[Outcome, ...], name: str) -> int:
    known = 0
    for flag, other, step in (
        (False, None, 0), (True, None, 1), (True, mixed("other"), 0), (False, mixed("other"), 2)
    ):  # fmt: skip
        ran, read = _made(module, flag, other), _made(module, flag, other)
        reader = Reader(read, {"h": mixed("hidden"), "step": step})
        holding = _holding([o for o in outcomes if _is_known(o)], reader)  # type: ignore[arg-type]
        try:
            result = getattr(ran, name)(mixed("hidden"), step).data
        except AssertionError:
            result = None
        assert len(holding) <= 1
        if not all(map(_is_known, outcomes)) and not holding:
            continue
        (one,) = holding
        known += 1
        assert (None if one.value is None else reader.read(one.value).data) == result
    return known


@settings(max_examples=40, deadline=None, phases=PHASES)
@given(st.lists(bodies(), min_size=4, max_size=8), initials())
def test_a_term_says_what_python_returns(texts: list[str], more: str) -> None:
    module = _module(texts, more)
    symbolic = _symbolic(module)
    for number in range(len(texts)):
        _check(module, symbolic.run(f"m{number}"), f"m{number}")
