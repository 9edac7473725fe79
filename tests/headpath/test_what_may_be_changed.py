"""What may be changed, or be something else than it seems: none of it is proven equivalent."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from trees.heads import HEAD, LAYERS
from trees.minivllm import INIT, coverage, row_of

from auditor.api import Request

FLAT = "return self.logits_processor(self.lm_head, hidden_states)"
TOP = "return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)"
NORM = "hidden_states = self.norm(hidden_states)"
MODEL = """
def __init__(self, cfg):
    super().__init__()
    self.lm_head = ParallelLMHead(8, 8)
    self.alt = ParallelLMHead(8, 8)
    self.logits_processor = LogitsProcessor(8)
    self.model = Predictor()
    self.norm = RMSNorm(8)
    self.same = nn.Identity()
    self.d2t = nn.Parameter(torch.zeros(8))
    self.never = None
"""
SWAP = """
def swap(self):
    self.lm_head = self.alt
    return 1
"""


def answer(
    logits: str = "",
    tokens: str = "",
    *,
    init: str = "",
    more: str = "",
    before: str = "",
    bases: str = "nn.Module",
    files: dict[str, str] | None = None,
) -> tuple[str | None, str]:
    """The equivalence of two methods, each with its last line unless it returns by itself."""
    methods = []
    for name, body, last in (("compute_logits", logits, FLAT), ("get_top_tokens", tokens, TOP)):
        text = dedent(body).strip()
        lines = text if "return" in text else f"{text}\n{last}".strip()
        methods.append(f"def {name}(self, hidden_states, step=0):\n{indent(lines, '    ')}\n")
    inner = MODEL + indent(dedent(init), "    ") + "\n" + "".join(methods) + dedent(more)
    draft = f"{HEAD}\n{dedent(before)}\nclass Draft({bases}):\n{indent(inner, '    ')}"
    document = coverage({**LAYERS, INIT: draft, **(files or {})}, Request(platforms=("cuda",)))
    row = row_of(document, "cuda")
    return row.equivalence, row.reason or ""


IF_NEVER = f"if self.never is not None:\n    {NORM}\n{FLAT}"
IF_DO = f"if getattr(self, 'do', False):\n    {NORM}\n{FLAT}"
SAME = "hidden_states = self.same(hidden_states)"
REMAP = """
logits = self.logits_processor(self.lm_head, hidden_states)
new = logits.new_{}
new[{}] = logits
return new
"""
MAPPED = """
top = self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
return top + self.d2t[top]
"""
MINUS = "full((1, 9), float('-inf'))"


@pytest.mark.parametrize(
    "init",
    [
        "self.x = self.same = RMSNorm(8)",
        "self.x, self.same = 1, RMSNorm(8)",
        "self.x, *self.same = cfg",
        "match cfg:\n    case 1:\n        self.same = RMSNorm(8)",
        "try:\n    pass\nexcept E:\n    self.same = RMSNorm(8)",
        "try:\n    pass\nfinally:\n    self.same = RMSNorm(8)",
        "with cfg as self.same:\n    pass",
        "for self.same in cfg:\n    pass",
        "setattr(self, 'same', RMSNorm(8))",
        "setattr(self, cfg.name, RMSNorm(8))",
        "object.__setattr__(self, 'same', RMSNorm(8))",
        "super().__setattr__('same', RMSNorm(8))",
        "self.add_module('same', RMSNorm(8))",
        "self.register_module(name='same', module=RMSNorm(8))",
        "self.register_buffer('same', cfg)",
        "self.register_parameter('same', cfg)",
        "self.__dict__['same'] = RMSNorm(8)",
        "self._modules.update(same=RMSNorm(8))",
        "vars(self)['same'] = RMSNorm(8)",
        "self.more()",
        "self.same.register_forward_hook(lambda *a: -a[2])",
        "fill(self)",
        "outside(self)",
        "Filler(self)",
        "same = nn.Identity()\nsame, x = RMSNorm(8), 1\nself.same = same",
        "same = nn.Identity()\nif cfg:\n    same = RMSNorm(8)\nself.same = same",
        "def later():\n    self.same = RMSNorm(8)\nlater()",
        "del self.same",
    ],
)
def test_an_attribute_that_may_be_set_in_another_way_is_not_what_init_says(init: str) -> None:
    before = """
    from elsewhere import outside
    def fill(model):
        setattr(model, 'same', RMSNorm(8))
    class Filler:
        def __init__(self, model):
            model.same = RMSNorm(8)
    """
    more = "def more(self):\n    self.same = RMSNorm(8)\n" if "more()" in init else ""
    found, reason = answer(SAME, init=init, more=more, before=before)
    assert found != "equivalent"
    assert reason
    never = init.replace("self.same", "self.never").replace("'same'", "'never'")
    never = never.replace("same=", "never=").replace("self.more()", "self.more2()")
    more = "def more2(self):\n    self.never = RMSNorm(8)\n" if "more" in init else ""
    before = before.replace("same", "never")
    found, reason = answer(IF_NEVER, init=never, more=more, before=before)
    assert found != "equivalent"
    assert reason


def test_attributes_that_nothing_else_sets_are_what_init_says() -> None:
    assert answer(SAME)[0] == "equivalent"
    assert answer(IF_NEVER)[0] == "equivalent"
    assert answer(IF_DO)[0] == "equivalent"
    assert answer(init="helper(cfg, [1])\nself.x: int")[0] == "equivalent"


@pytest.mark.parametrize(
    ("logits", "tokens", "more"),
    [
        (IF_DO, "", "do = True\n"),
        (IF_DO, "", "def load_weights(self, w):\n    self.do = True\n"),
        (IF_DO, "", "def __getattr__(self, name):\n    return True\n"),
        (IF_DO.replace("'do'", "'training'"), "", ""),
        (SAME, "", "def load_weights(self, w):\n    self.same = RMSNorm(8)\n"),
        ("", "self.use = True", "@property\ndef lm_head(self):\n    return self.alt\n"
         "@lm_head.setter\ndef lm_head(self, v):\n    self.h = v\n"),
        ("", "del self.lm_head", ""),
        ("", "hidden_states[...] = 0", ""),
        ("", "self.lm_head.weight *= -1", ""),
        ("", "self.lm_head.weight.data.neg_()", ""),
        ("", "weight = self.lm_head.weight\nweight.neg_()", ""),
        ("", "self.lm_head.weight[0] = 9", ""),
        ("", "self.model.logits_processor = self.alt\nself.lm_head.weight = self.d2t", ""),
    ],
)  # fmt: skip
def test_reads_and_writes_that_are_more_than_they_seem(logits: str, tokens: str, more: str) -> None:
    assert answer(logits, tokens, more=more)[0] != "equivalent"


@pytest.mark.parametrize(
    "tokens",
    [
        "setattr(self, 'lm_head', self.alt)",
        "self._modules['lm_head'] = self.alt",
        "self.__dict__['lm_head'] = self.alt",
        "vars(self)['lm_head'] = self.alt",
        "self.add_module('lm_head', self.alt)",
        "swap(self)",
        "_ = swap(self)",
        "swap([self])",
        "swap(model=self)",
        "swap(*[self])",
        "swap(self.swap)",
        "Draft.swap(self)",
        "super(Draft, self).swap()",
        "super().swap()",
        "self.swap(*())",
        "if 0 < self.swap() < 2:\n    pass",
        "(lambda: self.swap())()",
        "[self.swap() for _ in range(1)]",
        "{'a': self.swap()}",
        "x = y = self.swap()",
        "with self.swap():\n    pass",
        "with swap(hidden_states):\n    pass",
        "hidden_states.mul_(*[-1])",
        "torch.neg_(hidden_states)",
        "_ = torch.neg(hidden_states, out=hidden_states)",
        "_ = nn.functional.relu(hidden_states, True)",
        "_ = self.act(hidden_states)",
        "_ = self.made.go(hidden_states)",
        "_, x = self.norm(self.d2t, hidden_states)",
        "torch.neg_(self.lm_head.weight)",
        "hidden_states = hidden_states + torch.rand_like(hidden_states)",
        "self.keep(hidden_states)",
        "kernel(hidden_states)",
        "for _ in range(1):\n    kernel(hidden_states)",
        "for h in [hidden_states]:\n    h.neg_()",
        "_ = [h.neg_() for h in [hidden_states]]",
        "_ = f'{self.norm:{hidden_states.neg_()}}'",
        "sorted([self], key=swap)",
        "list(map(swap, [self]))",
        "getattr(self, 'swap')()",
        "held = dict(a=hidden_states)\nheld['a'].neg_()",
        "held = [hidden_states]\nheld[0].neg_()",
        "torch.squeeze(hidden_states).neg_()",
        "hidden_states.mT.neg_()",
        "hidden_states.data = self.d2t",
        "_ = self.op + hidden_states",
        "_ = self.op[hidden_states]",
        "self.to(torch.float16)",
        "self.__class__.lm_head = self.d2t",
        "type(self).lm_head = self.d2t",
        "type(self).swap(self)",
        "self.logits_processor = self.alt",
    ],
)
def test_a_call_may_change_what_it_is_handed(tokens: str) -> None:
    init = "self.act = nn.ReLU(inplace=True)\nself.made = make()\nself.op = Op()"
    before = """
    class Op:
        def __add__(self, other):
            return other.neg_()
        def __getitem__(self, other):
            return other.neg_()
    """
    keep = "def keep(self, h, kept=[]):\n    kept.append(h)\n    kept[0].neg_()\n"
    found, reason = answer(tokens=tokens, init=init, more=SWAP + keep, before=before)
    assert found != "equivalent"
    assert reason


@pytest.mark.parametrize(
    "both",
    [
        "hidden_states = kernel(hidden_states, self.norm.weight)",
        "print(hidden_states.shape)",
        "assert hidden_states.dim() == 2",
        "hidden_states = torch.cat([hidden_states, hidden_states])",
        "with torch.no_grad():\n    hidden_states = self.norm(hidden_states)",
        "hidden_states = self.norm(self.same(hidden_states))",
        "hidden_states = hidden_states.view(-1, 8).float()",
    ],
)
def test_what_both_methods_do_alike_stays_proven(both: str) -> None:
    assert answer(both, both)[0] == "equivalent"


@pytest.mark.parametrize(
    ("logits", "init"),
    [
        ("return self.logits_processor(self.tied, hidden_states)",
         "self.tied = self.lm_head\nself.lm_head = ParallelLMHead(8, 8)"),
        ("return self.logits_processor(self.tied, hidden_states)",
         "self.tied = self.lm_head\nself.other = self.lm_head = ParallelLMHead(8, 8)"),
    ],
)  # fmt: skip
def test_an_alias_of_what_is_replaced_is_neither_proven_nor_refuted(logits: str, init: str) -> None:
    assert answer(logits, init=init)[0] == "unproven"
    assert answer(logits, init="self.tied = self.lm_head")[0] == "equivalent"


@pytest.mark.parametrize(
    "before",
    [
        "class Pre(nn.Module):\n    def __call__(self, x):\n        return -self.forward(x)\n"
        "    def forward(self, x):\n        return x\n",
        "class Pre(nn.Identity):\n    def forward(self, x):\n        return -x\n",
        "class Pre(nn.Identity):\n    def __call__(self, x):\n        return -x\n",
    ],
)
def test_a_submodule_is_called_as_its_class_says(before: str) -> None:
    pre = "hidden_states = self.pre(hidden_states)"
    assert answer(pre, init="self.pre = Pre()", before=before)[0] != "equivalent"
    plain = "class Pre(nn.Identity):\n    pass\n"
    assert answer(pre, init="self.pre = Pre()", before=plain)[0] == "equivalent"


@pytest.mark.parametrize(
    ("build", "index", "found"),
    [
        (MINUS, ":, torch.arange(8) + self.d2t", "equivalent"),
        ("zeros((1, 9))", ":, torch.arange(8) + self.d2t", "unproven"),
        ("empty((1, 9))", ":, torch.arange(8) + self.d2t", "unproven"),
        ("full((1, 9), float('inf'))", ":, torch.arange(8) + self.d2t", "unproven"),
        ("full((1, 9), 0.0)", ":, torch.arange(8) + self.d2t", "unproven"),
        (MINUS, ":, torch.arange(5, 13) + self.d2t", "unproven"),
        (MINUS, ":, torch.arange(0, 16, 2) + self.d2t", "unproven"),
        (MINUS, "1:, torch.arange(8) + self.d2t", "unproven"),
    ],
)
def test_a_remap_moves_each_logit_into_minus_infinity(build: str, index: str, found: str) -> None:
    assert answer(REMAP.format(build, index), MAPPED)[0] == found


@pytest.mark.parametrize(
    ("built", "init", "found"),
    [
        ("LogitsProcessor(8, scale=2.0)", "", "equivalent"),
        ("LogitsProcessor(8, scale=1 / -2)", "", "different"),
        ("LogitsProcessor(8, scale=1e400)", "", "different"),
        ("LogitsProcessor(8, 8, -1.0)", "", "conditional"),
        ("LogitsProcessor(8, **{'scale': -1.0})", "", "conditional"),
        ("LogitsProcessor(*cfg)", "", "conditional"),
        ("LogitsProcessor(8)", "self.logits_processor.scale = -1.0", "conditional"),
        ("LogitsProcessor(8, logits_as_input=True)", "", "different"),
    ],
)
def test_a_factor_that_is_not_read_is_a_condition(built: str, init: str, found: str) -> None:
    init = f"self.logits_processor = {built}\n{init}"
    assert answer(init=init)[0] == found


OTHER = """
import torch.nn as nn
K = -2

class Base(nn.Module):
    def f(self, h):
        return h * K

    def by_default(self, h, k=K):
        return h * k

    def __pre(self, h):
        return -h

    def private(self, h):
        return self.__pre(h)
"""


@pytest.mark.parametrize(
    ("logits", "tokens"),
    [
        ("hidden_states = hidden_states * K", "hidden_states = self.f(hidden_states)"),
        ("hidden_states = hidden_states * K", "hidden_states = self.by_default(hidden_states)"),
        (
            "hidden_states = self.__pre(hidden_states)",
            "hidden_states = self.private(hidden_states)",
        ),
        ("hidden_states = hidden_states[True]", "hidden_states = hidden_states[1]"),
    ],
)
def test_alike_in_name_is_not_the_same(logits: str, tokens: str) -> None:
    found, _ = answer(
        logits,
        tokens,
        bases="Base",
        before="from vllm.models.other import Base\nK = 2\n",
        more="def __pre(self, h):\n    return h\n",
        files={"vllm/models/other.py": OTHER},
    )
    assert found != "equivalent"
