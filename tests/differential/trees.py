"""Mini packages: their files, what is imported in which order, and what stays open in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

ROOT = "vllm"

PREDICATES = {"is_cuda": True, "is_cuda_alike": True, "is_rocm": False, "is_xpu": False}

DEVICE = {"device_type": "cuda", "device_name": "cuda"}

#: Attributes that every class is asked for.
ATTRIBUTES = ["get_top_tokens", "compute_logits", "alpha", "beta"]

#: ``vllm/platforms/__init__.py``: serves ``current_platform`` as vLLM does, on demand.
PLATFORMS = """\
_current_platform = None

def __getattr__(name):
    if name == "current_platform":
        global _current_platform
        if _current_platform is None:
            import fake_platform
            _current_platform = fake_platform.current
        return _current_platform
    elif name in globals():
        return globals()[name]
    else:
        raise AttributeError(f"No attribute named '{name}' exists in {__name__}.")
"""

PRESENT_LIB = """\
class Thing:
    pass

def function(*args, **kwargs):
    return args[0] if args else None

FLAG = {flag}
"""

#: What no fact of a platform decides: a variable, an attribute of a library, a library.
VARIABLE, FLAG, LIBRARY = "variable", "flag", "library"
OPEN_KINDS = (VARIABLE, FLAG, LIBRARY)


@dataclass(frozen=True)
class Tree:
    """A package, the modules to import in order, and names to ask modules for afterwards."""

    files: dict[str, str]
    entries: list[str]
    probes: list[tuple[str, str]]
    open: tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = [f"\n# ==== {path}\n{text}" for path, text in self.files.items() if text]
        return f"{''.join(parts)}\nentries={self.entries} probes={self.probes} open={self.open}"


@dataclass(frozen=True)
class Outcome:
    """One way in which the open conditions come out."""

    files: dict[str, str]
    environment: dict[str, str]


def outcomes(tree: Tree) -> Iterator[Outcome]:
    """Every combination of what the open conditions of a tree may come out as."""
    for answers in product((False, True), repeat=len(tree.open)):
        chosen = dict(zip(tree.open, answers, strict=True))
        files = {"present_lib/__init__.py": PRESENT_LIB.format(flag=chosen.get(FLAG, False))}
        files["present_lib/sub.py"] = "class Part:\n    pass\n"
        if chosen.get(LIBRARY):
            files["maybe_lib.py"] = "class Thing:\n    pass\n"
        yield Outcome(files, {"VLLM_SWITCH": "1"} if chosen.get(VARIABLE) else {})
