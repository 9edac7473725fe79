"""Where a class gets the method from: bases over several files, in the order of C3."""

from __future__ import annotations

from trees.minivllm import INIT, MIXIN, Answer, Case, Side, fails, has, lacks, undecided

LOGITS = "    def compute_logits(self, h): ...\n"
METHOD = "    def get_top_tokens(self, h): ...\n"
DRAFT = "vllm.models.draft.Draft"
BASE = "vllm.models.draft.base"
USE_MIXIN = "from vllm.model_executor.models.interfaces import LocalArgmaxMixin\n"

CHECKING = """
from typing import TYPE_CHECKING
import torch.nn as nn
from .nvidia import Draft as Real

if {test}:
    class _Base(nn.Module): pass
else:
    _Base = Real

class Draft(_Base):
    def compute_logits(self, h): ...
"""
PLATFORM_BASE = """
from vllm.platforms import current_platform
if current_platform.{predicate}():
    from .nvidia import Draft as _Base
else:
    from .amd import Draft as _Base

class Draft(_Base):
    pass
"""


def base(init: str, base: str, answer: Answer) -> Side:
    """A dispatch package and a file ``base.py`` beside it."""
    return Side({INIT: init, "vllm/models/draft/base.py": base}, {"else": answer})


def order(bases: str, answer: Answer) -> Side:
    """A diamond whose two sides disagree."""
    return Side(
        {
            INIT: "class Top:\n    compute_logits = None\n"
            "class Left(Top):\n    pass\n"
            f"class Right(Top):\n{METHOD}"
            "class Far(Right):\n    get_top_tokens = None\n"
            f"class Draft({bases}):\n    pass\n"
        },
        {"else": answer},
    )


CASES = (
    Case(
        "a mixin of another file provides the method",
        Side({INIT: f"{USE_MIXIN}class Draft(LocalArgmaxMixin):\n{LOGITS}"},
             {"else": has(DRAFT, MIXIN)}),
        twin=Side({INIT: f"{USE_MIXIN}class Draft:\n{LOGITS}"}, {"else": lacks(DRAFT)}),
    ),
    Case(
        "a base of the same name in another module is another class",
        base("from . import base\n\nclass Draft(base.Draft):\n    pass\n",
             f"class Draft:\n{METHOD}", has(DRAFT, f"{BASE}.Draft")),
        twin=base("from . import base\n\nclass Draft(base.Draft):\n    pass\n",
                  f"class Draft:\n{LOGITS}", lacks(DRAFT)),
    ),
    Case(
        "a class may be named like the base that it replaces",
        base("from .base import Draft\n\nclass Draft(Draft):\n    pass\n",
             f"class Draft:\n{METHOD}", has(DRAFT, f"{BASE}.Draft")),
        twin=base("from .base import Draft\n\nclass Draft:\n    compute_logits = 1\n",
                  f"class Draft:\n{METHOD}", lacks(DRAFT)),
    ),
    Case(
        "a base that only the type checker sees is not a base",
        Side({INIT: CHECKING.format(test="TYPE_CHECKING")},
             {"else": has(DRAFT, "vllm.models.draft.nvidia.Draft")}),
        twin=Side({INIT: CHECKING.format(test="not TYPE_CHECKING")}, {"else": lacks(DRAFT)}),
    ),
    Case(
        "the platform picks the base",
        Side({INIT: PLATFORM_BASE.format(predicate="is_cuda")},
             {"cuda": has(DRAFT, "vllm.models.draft.nvidia.Draft"), "else": lacks(DRAFT)}),
        twin=Side({INIT: PLATFORM_BASE.format(predicate="is_xpu")},
                  {"xpu": has(DRAFT, "vllm.models.draft.nvidia.Draft"), "else": lacks(DRAFT)}),
    ),
    Case(
        "the nearest class in the MRO provides it",
        order("Left, Right", has(DRAFT, "vllm.models.draft.Right")),
        twin=order("Far, Right", has(DRAFT, "vllm.models.draft.Far")),
    ),
    Case(
        "bases that no order satisfies are a TypeError at import",
        order("Right, Far", fails("TypeError", "Cannot create a consistent method resolution\n"
                                  "order (MRO) for bases Right, Far")),
        twin=order("Far, Right", has(DRAFT, "vllm.models.draft.Far")),
    ),
    Case(
        "generic bases are their classes",
        Side({INIT: "from typing import Generic, TypeVar\nT = TypeVar('T')\n"
              f"class Base(Generic[T]):\n{METHOD}class Draft(Base[int]):\n    pass\n"},
             {"else": has(DRAFT, "vllm.models.draft.Base")}),
        twin=Side({INIT: "from typing import Generic, TypeVar\nT = TypeVar('T')\n"
                   f"class Base(Generic[T]):\n{LOGITS}class Draft(Base[int]):\n    pass\n"},
                  {"else": lacks(DRAFT)}),
    ),
    Case(
        "a base made by a call stays open, unless the class itself has the method",
        Side({INIT: f"import torch\n\nclass Draft(torch.make()):\n{LOGITS}"},
             {"else": undecided(f"a base of {DRAFT} is not known: the result of torch.make()",
                                DRAFT)}),
        twin=Side({INIT: f"import torch\n\nclass Draft(torch.make()):\n{METHOD}"},
                  {"else": has(DRAFT)}),
    ),
    Case(
        "a base patched in its own module passes the method on",
        base("from .base import Base\n\nclass Draft(Base):\n    pass\n",
             f"class Base:\n{LOGITS}Base.get_top_tokens = Base.compute_logits\n",
             has(DRAFT, f"{BASE}.Base")),
        twin=base("from .base import Base\n\nclass Draft(Base):\n    pass\n",
                  f"class Base:\n{LOGITS}Base.top = Base.compute_logits\n", lacks(DRAFT)),
    ),
    Case(
        "a base from a star import over two files is found",
        base("from .base import *\n\nclass Draft(Base):\n    pass\n",
             "from .nvidia import *\n\nBase = Draft\n",
             has(DRAFT, "vllm.models.draft.nvidia.Draft")),
        twin=base("from .base import *\n\nclass Draft(Base):\n    pass\n",
                  "from .amd import *\n\nBase = Draft\n", lacks(DRAFT)),
    ),
)  # fmt: skip
