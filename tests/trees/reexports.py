"""How a name reaches the module that the registry names: re-exports, stars, and PEP 562."""

from __future__ import annotations

from trees.dispatch import AMD, COMMON, NVIDIA, init
from trees.minivllm import (
    CLASS,
    INIT,
    MODULE,
    Answer,
    Case,
    Side,
    absent,
    fails,
    has,
    lacks,
)

BY_NAME = """
def __getattr__(name):
    if name == "{name}":
        if current_platform.is_rocm():
            from .amd import Draft
        else:
            from .nvidia import Draft
        return Draft
    raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
"""
BY_ALL = """
__all__ = [{names}]

def __getattr__(name):
    if name in __all__:
        if current_platform.is_rocm():
            from . import amd as implementation
        else:
            from . import nvidia as implementation
        return getattr(implementation, name)
    raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
"""
BY_DICT = """
import importlib

_WHERE = {{"Draft": ".nvidia"}}
if current_platform.{predicate}():
    _WHERE["Draft"] = ".amd"

def __getattr__(name):
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name], __name__), name)
    raise AttributeError(name)
"""
REFUSING = """
def __getattr__(name):
    if {test}:
        raise NotImplementedError(f"{{name}} needs CUDA")
    from .nvidia import Draft
    return Draft
"""
SEVERAL = {
    INIT: "from .first import Draft\n",
    "vllm/models/draft/first.py": "from .second import Inner as Draft\n",
    "vllm/models/draft/second.py": "from . import third as t\n\nInner = t.Draft\n",
}
STAR = "from .stars import *\n"
BRANCHED = """
from vllm.platforms import current_platform
if current_platform.is_rocm():
    from .amd import *
else:
    from .nvidia import *
"""


def several(third: str, answer: Answer) -> Side:
    """Three files between the registry and the class."""
    return Side({**SEVERAL, "vllm/models/draft/third.py": third}, {"else": answer})


def star(stars: str, answer: Answer) -> Side:
    """A star import of a module that holds ``stars``."""
    return Side({INIT: STAR, "vllm/models/draft/stars.py": stars}, {"else": answer})


CASES = (
    Case(
        "a module __getattr__ serves one name",
        init(BY_NAME.format(name="Draft"), {"rocm": AMD, "else": NVIDIA}),
        twin=init(BY_NAME.format(name="Drafts"), {"else": absent()}),
    ),
    Case(
        "a module __getattr__ serves what __all__ lists",
        init(BY_ALL.format(names='"Other", "Draft"'), {"rocm": AMD, "else": NVIDIA}),
        twin=init(BY_ALL.format(names='"Other"'), {"else": absent()}),
    ),
    Case(
        "a module __getattr__ looks a name up in a dict and imports the module",
        init(BY_DICT.format(predicate="is_rocm"), {"rocm": AMD, "else": NVIDIA}),
        twin=init(BY_DICT.format(predicate="is_xpu"), {"xpu": AMD, "else": NVIDIA}),
    ),
    Case(
        "a module __getattr__ that raises makes the class unimportable, not absent",
        init(
            REFUSING.format(test="not current_platform.is_cuda()"),
            {"cuda": NVIDIA, "else": fails("NotImplementedError", "Draft needs CUDA")},
        ),
        twin=init(REFUSING.format(test="name != 'Draft'"), {"else": NVIDIA}),
    ),
    Case(
        "a bound name hides the module __getattr__",
        init(BY_NAME.format(name="Draft") + "\nfrom .common import Draft\n", {"else": COMMON}),
        twin=init(
            BY_NAME.format(name="Draft") + "\nfrom .common import Draft\ndel Draft\n",
            {"rocm": AMD, "else": NVIDIA},
        ),
    ),
    Case(
        "an alias of an import is the class that was imported",
        init("from .nvidia import Draft as Mine\n\nDraft = Mine\n", {"else": NVIDIA}),
        twin=init(
            "from .nvidia import Draft as Mine\nfrom .amd import Draft\n\nMine = Draft\n",
            {"else": AMD},
        ),
    ),
    Case(
        "aliases are followed over several files",
        several("import vllm.models.draft.nvidia as n\n\nDraft = n.Draft\n", NVIDIA),
        twin=several("import vllm.models.draft.amd as n\n\nDraft = n.Draft\n", AMD),
    ),
    Case(
        "a star import brings the public names",
        star("from .nvidia import Draft\n", NVIDIA),
        twin=star("from .nvidia import Draft as _Draft\n", absent()),
    ),
    Case(
        "a star import brings what __all__ lists and nothing else",
        star("from .nvidia import Draft\n\n__all__ = ['Draft']\n", NVIDIA),
        twin=star("from .nvidia import Draft\n\n__all__ = []\n", absent()),
    ),
    Case(
        "a later star import hides an earlier name",
        Side({INIT: f"from .nvidia import Draft\n{BRANCHED}"}, {"rocm": AMD, "else": NVIDIA}),
        twin=Side({INIT: f"{BRANCHED}\nfrom .nvidia import Draft\n"}, {"else": NVIDIA}),
    ),
    Case(
        "an entry names a full module path, or one relative to the package of models",
        Side({INIT: "from .nvidia import Draft\n"}, {"else": NVIDIA}, (MODULE, CLASS)),
        twin=Side(
            {"vllm/model_executor/models/draft.py": "class Draft:\n    compute_logits = None\n"},
            {"else": lacks("vllm.model_executor.models.draft.Draft")},
            ("draft", CLASS),
        ),
    ),
    Case(
        "an entry may name a submodule of the dispatch package",
        Side({INIT: ""}, {"else": NVIDIA}, ("vllm.models.draft.nvidia", CLASS)),
        twin=Side(
            {INIT: "raise ImportError('not built')"},
            {"else": fails("ImportError", "not built")},
            ("vllm.models.draft.nvidia", CLASS),
        ),
    ),
    Case(
        "a module that does not exist cannot be imported",
        Side(
            {},
            {"else": fails("ModuleNotFoundError", "No module named 'vllm.models.nothing'")},
            ("vllm.models.nothing", CLASS),
        ),
        twin=Side(
            {"vllm/models/nothing.py": "from .draft.nvidia import Draft\n", INIT: ""},
            {"else": NVIDIA},
            ("vllm.models.nothing", CLASS),
        ),
    ),
    Case(
        "a class with another name keeps its own",
        init(
            "from .nvidia import Draft as Other\n\nclass Draft(Other):\n    pass\n",
            {"else": has("vllm.models.draft.Draft", "vllm.models.draft.nvidia.Draft")},
        ),
        twin=init("from .nvidia import Draft as Other\n\nDraft = Other\n", {"else": NVIDIA}),
    ),
)
