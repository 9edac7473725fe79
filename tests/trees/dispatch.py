"""How a package picks a class for a platform: conditions, raises and names that are missing."""

from __future__ import annotations

from trees.minivllm import (
    INIT,
    MIXIN,
    Answer,
    Case,
    Side,
    absent,
    fails,
    has,
    lacks,
)

NVIDIA = has("vllm.models.draft.nvidia.Draft")
AMD = lacks("vllm.models.draft.amd.Draft")
COMMON = has("vllm.models.draft.common.Draft", MIXIN)

PLATFORM = "from vllm.platforms import current_platform\n"


def init(text: str, answers: dict[str, Answer]) -> Side:
    """A tree whose dispatch package holds ``text``, below the import of ``current_platform``."""
    return Side({INIT: PLATFORM + text}, answers)


CHAIN = """
if current_platform.{first}():
    from .nvidia import Draft
elif current_platform.is_rocm():
    from .amd import Draft
else:
    from .common import Draft
"""
TERNARY = """
from . import amd, nvidia

Draft = {first}.Draft if current_platform.is_rocm() else {second}.Draft
"""
CHECKING = """
from typing import TYPE_CHECKING

if TYPE_CHECKING {word} not current_platform.is_rocm():
    from .nvidia import Draft
else:
    from .amd import Draft
"""
RAISING = """
if current_platform.is_cuda_alike():
    from .nvidia import Draft
{indent}else:
{indent}    raise NotImplementedError(f"no draft on {{current_platform.device_name}}")
"""
DEVICE_TYPE = """
if current_platform.device_type in {names}:
    from .nvidia import Draft
else:
    from .amd import Draft
"""
TRYING = """
try:
    from .needs_extension import Draft
except {types}:
    from .amd import Draft
"""
FIND_SPEC = """
from importlib.util import find_spec

if find_spec("{module}") is not None:
    from .nvidia import Draft
else:
    from .amd import Draft
"""
GETATTR = """
from . import {module} as implementation

Draft = getattr(implementation, "Draft", None) or getattr(implementation, "Other")
"""

CASES = (
    Case(
        "an if/elif/else chain takes the first branch that holds",
        init(CHAIN.format(first="is_cuda"), {"cuda": NVIDIA, "rocm": AMD, "else": COMMON}),
        twin=init(CHAIN.format(first="is_cuda_alike"), {"cuda rocm": NVIDIA, "else": COMMON}),
    ),
    Case(
        "a conditional expression picks the class",
        init(TERNARY.format(first="amd", second="nvidia"), {"rocm": AMD, "else": NVIDIA}),
        twin=init(TERNARY.format(first="nvidia", second="amd"), {"rocm": NVIDIA, "else": AMD}),
    ),
    Case(
        "TYPE_CHECKING is false, so `TYPE_CHECKING or not …` asks the platform",
        init(CHECKING.format(word="or"), {"rocm": AMD, "else": NVIDIA}),
        twin=init(CHECKING.format(word="and"), {"else": AMD}),
    ),
    Case(
        "a raise at import makes the module unimportable where it is reached",
        init(
            RAISING.format(indent=""),
            {
                "cuda rocm": NVIDIA,
                "xpu": fails("NotImplementedError", "no draft on xpu"),
                "cpu": fails("NotImplementedError", "no draft on cpu"),
                "tpu": fails("NotImplementedError", "no draft on tpu"),
                "oot": fails("NotImplementedError", "no draft on oot"),
            },
        ),
        twin=init(
            RAISING.format(indent="    ").replace("    else:", "    def refuse():"),
            {"cuda rocm": NVIDIA, "else": absent()},
        ),
    ),
    Case(
        "`pass` for a platform leaves the name unbound",
        init(
            "if current_platform.is_tpu():\n    pass\nelse:\n    from .nvidia import Draft\n",
            {"tpu": absent(), "else": NVIDIA},
        ),
        twin=init(
            "if current_platform.is_tpu():\n    pass\nfrom .nvidia import Draft\n", {"else": NVIDIA}
        ),
    ),
    Case(
        "a name bound to None is no class",
        init(
            "if current_platform.is_xpu():\n    Draft = None\nelse:\n    from .amd import Draft\n",
            {
                "xpu": Answer("absent", False, reason="vllm.models.draft.Draft is None there"),
                "else": AMD,
            },
        ),
        twin=init(
            "Draft = None\nif not current_platform.is_xpu():\n    from .amd import Draft\n"
            "else:\n    from .nvidia import Draft\n",
            {"xpu": NVIDIA, "else": AMD},
        ),
    ),
    Case(
        "membership in a string is a substring test, as in Python",
        init(DEVICE_TYPE.format(names='("cuda_like_device")'), {"cuda rocm": NVIDIA, "else": AMD}),
        twin=init(DEVICE_TYPE.format(names='("cuda_like_device",)'), {"else": AMD}),
    ),
    Case(
        "current_platform under another name is the same object",
        Side(
            {
                INIT: "from vllm import platforms as p\n\nhere = p.current_platform\n"
                "ON_AMD = here.is_rocm()\n"
                "if not ON_AMD:\n    from .nvidia import Draft\nelse:\n    from .amd import Draft\n"
            },
            {"rocm": AMD, "else": NVIDIA},
        ),
        twin=Side(
            {
                INIT: "class here:\n    @staticmethod\n    def is_rocm():\n        return True\n\n"
                "if not here.is_rocm():\n    from .nvidia import Draft\n"
                "else:\n    from .amd import Draft\n"
            },
            {"else": AMD},
        ),
    ),
    Case(
        "except ImportError takes the place of a module that needs an extension of CUDA",
        Side(
            {
                INIT: TRYING.format(types="ImportError"),
                "vllm/models/draft/needs_extension.py": "import vllm._cuda_only_C\n"
                "from .nvidia import Draft\n",
            },
            {"else": AMD},
        ),
        twin=Side(
            {
                INIT: TRYING.format(types="(ValueError, AttributeError)"),
                "vllm/models/draft/needs_extension.py": "import vllm._cuda_only_C\n"
                "from .nvidia import Draft\n",
            },
            {"else": fails("ModuleNotFoundError", "No module named 'vllm._cuda_only_C'")},
        ),
    ),
    Case(
        "find_spec says whether a module of the tree exists",
        init(FIND_SPEC.format(module="vllm.models.draft.common"), {"else": NVIDIA}),
        twin=init(FIND_SPEC.format(module="vllm.models.draft.intel"), {"else": AMD}),
    ),
    Case(
        "getattr on a module gives its name, or the default",
        init(GETATTR.format(module="amd"), {"else": AMD}),
        twin=Side(
            {
                INIT: GETATTR.format(module="amd"),
                "vllm/models/draft/amd.py": "from .nvidia import Draft as Other\n",
            },
            {"else": NVIDIA},
        ),
    ),
)
