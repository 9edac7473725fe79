"""The steps from the registry line to the answer: in order, at the right line, with its text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from trees.minivllm import ARCHITECTURE, GUARD, INIT, REGISTRY, coverage, files, row_of

from auditor.coverage import Coverage, Row, Step

RELAY, MODEL, BASE = (f"vllm/models/draft/{name}.py" for name in ("relay", "model", "base"))
FLASH = "vllm/vllm_flash_attn/__init__.py"

TREE = {
    INIT: """
        from vllm.platforms import current_platform

        if current_platform.is_cuda():
            from .nvidia import Draft
        elif current_platform.is_rocm():
            from .relay import Draft
        else:
            raise NotImplementedError("only on GPUs")
        """,
    RELAY: """
        from .model import Inner as Draft
        """,
    MODEL: """
        import torch.nn as nn
        from . import base

        class Inner(base.Inner, nn.Module):
            pass
        """,
    BASE: """
        class Inner:
            def compute_logits(self, hidden_states):
                return None
        """,
}
DOTTED = "vllm.models.draft"
ENTRY = (REGISTRY, "'DraftModel': ('vllm.models.draft', 'Draft'),")


def _document() -> Coverage:
    return coverage(TREE)


def _steps(row: Row) -> list[tuple[str, str, str, str]]:
    return [(step.kind, step.path, step.text, step.note) for step in row.evidence]


def test_the_chain_of_a_class_without_the_method() -> None:
    row = row_of(_document(), "rocm")
    assert _steps(row) == [
        ("registry", *ENTRY, "names Draft of vllm.models.draft"),
        ("module", INIT, DOTTED, "the module asked for the class"),
        ("branch", INIT, "current_platform.is_cuda()", "false on rocm: not taken"),
        ("branch", INIT, "current_platform.is_rocm()", "true on rocm: taken"),
        ("branch", INIT, 'raise NotImplementedError("only on GPUs")',
         "the else branch, not reached on rocm: a branch above is taken"),
        ("import", INIT, "from .relay import Draft", ""),
        ("import", RELAY, "from .model import Inner as Draft", ""),
        ("class", MODEL, "class Inner(base.Inner, nn.Module):",
         f"{DOTTED}.model.Inner does not define get_top_tokens"),
        ("base", BASE, "class Inner:", f"{DOTTED}.base.Inner does not define get_top_tokens"),
        ("base", "", "torch.nn.Module", "outside the tree; taken not to define it"),
        ("method", "", "get_top_tokens", "no class in this order has it"),
        ("guard", GUARD, 'if not hasattr(self.model, "get_top_tokens"):',
         "ValueError: Inner cannot reduce locally: it has no get_top_tokens()."),
    ]  # fmt: skip


def test_the_chain_of_a_class_with_the_method() -> None:
    row = row_of(_document(), "cuda")
    assert _steps(row)[2:] == [
        ("branch", INIT, "current_platform.is_cuda()", "true on cuda: taken"),
        ("branch", INIT, "current_platform.is_rocm()",
         "not reached on cuda: a branch above is taken"),
        ("branch", INIT, 'raise NotImplementedError("only on GPUs")',
         "the else branch, not reached on cuda: a branch above is taken"),
        ("import", INIT, "from .nvidia import Draft", ""),
        ("class", "vllm/models/draft/nvidia.py", "class Draft(nn.Module):",
         f"{DOTTED}.nvidia.Draft defines get_top_tokens"),
        ("base", "", "torch.nn.Module", "outside the tree; taken not to define it"),
        ("method", "vllm/models/draft/nvidia.py", "def get_top_tokens(self, hidden_states):",
         f"{DOTTED}.nvidia.Draft.get_top_tokens, defined in the class body"),
    ]  # fmt: skip


def test_the_chain_of_a_raise_ends_in_the_raise() -> None:
    row = row_of(_document(), "xpu")
    assert _steps(row)[2:] == [
        ("branch", INIT, "current_platform.is_cuda()", "false on xpu: not taken"),
        ("branch", INIT, "current_platform.is_rocm()", "false on xpu: not taken"),
        ("raise", INIT, 'raise NotImplementedError("only on GPUs")',
         "NotImplementedError: only on GPUs"),
    ]  # fmt: skip
    assert row.error is not None
    assert row.error.chain == row.evidence[2:]


@pytest.mark.parametrize("platform", ["cuda", "rocm", "xpu"])
def test_every_step_with_a_place_stands_where_its_text_is(platform: str) -> None:
    for step in row_of(_document(), platform).evidence:
        if step.path and step.kind != "module":
            assert step.text in _line(TREE, step)


def _line(given: Mapping[str, str], step: Step) -> str:
    return files(given)[step.path].decode().splitlines()[step.line - 1]


SERVED = {
    INIT: """
        from vllm.platforms import current_platform

        def __getattr__(name):
            if name == "Draft":
                if current_platform.is_rocm():
                    from .amd import Draft
                else:
                    from .nvidia import Draft
                return Draft
            raise AttributeError(name)
        """
}


def test_a_module_getattr_is_followed_step_by_step() -> None:
    row = row_of(coverage(SERVED), "rocm")
    kinds = [(step.kind, step.line, step.text) for step in row.evidence[2:7]]
    assert kinds == [
        ("getattr", 3, "def __getattr__(name):"),
        ("branch", 4, 'if name == "Draft":'),
        ("branch", 5, "if current_platform.is_rocm():"),
        ("import", 6, "from .amd import Draft"),
        ("getattr", 9, "return Draft"),
    ]
    assert row.evidence[4].note == "current_platform.is_rocm() is true on rocm"


EXTENSION = {
    INIT: "from vllm.models.draft.attention import Draft\n",
    "vllm/models/draft/attention.py": """
        from vllm.vllm_flash_attn import run
        from .nvidia import Draft
        """,
    FLASH: """
        try:
            from . import _fa2_C
            FA2_AVAILABLE = True
        except ImportError:
            FA2_AVAILABLE = False

        if not FA2_AVAILABLE:
            raise ImportError("the extension of CUDA is needed")

        run = None
        """,
}
SETUP = """
    from setuptools import Extension, setup
    import envs

    class CMakeExtension(Extension):
        pass

    ext_modules = []
    if envs.VLLM_TARGET_DEVICE == "cuda":
        ext_modules.append(CMakeExtension(name="vllm.vllm_flash_attn._fa2_C"))
    setup(ext_modules=ext_modules)
    """


def test_a_deep_import_error_shows_the_chain_and_the_extension_that_is_missing() -> None:
    row = row_of(coverage(EXTENSION), "rocm")
    assert row.error is not None
    assert (row.error.type, row.error.message) == (
        "ImportError", "the extension of CUDA is needed",
    )  # fmt: skip
    assert [(step.kind, step.path, step.line, step.text) for step in row.error.chain] == [
        ("import", INIT, 1, "from vllm.models.draft.attention import Draft"),
        ("import", "vllm/models/draft/attention.py", 1, "from vllm.vllm_flash_attn import run"),
        ("branch", FLASH, 7, "not FA2_AVAILABLE"),
        ("raise", FLASH, 8, 'raise ImportError("the extension of CUDA is needed")'),
        ("fact", FLASH, 5, "FA2_AVAILABLE = False"),
    ]
    assert row.error.chain[-1].note.endswith(
        "the tree has no vllm.vllm_flash_attn._fa2_C, and nothing builds it on rocm"
    )


def test_setup_py_says_where_the_extension_is_built() -> None:
    document = coverage({**EXTENSION, "setup.py": SETUP})
    assert row_of(document, "cuda").verdict == "yes?"
    assert row_of(document, "rocm").verdict == "import"


def test_a_missing_module_shows_the_fact_behind_it() -> None:
    tree = {
        INIT: "import vllm_extra\nfrom .nvidia import Draft\n",
        "requirements/common.txt": "",
        "requirements/rocm.txt": "-r common.txt\ntorch\n",
        "requirements/cuda.txt": "-r common.txt\nvllm-extra>=1\n",
    }
    document = coverage(tree)
    row = row_of(document, "rocm")
    assert row_of(document, "cuda").verdict == "yes?"
    assert row.error is not None
    assert row.error.message == "No module named 'vllm_extra'"
    assert (row.error.chain[-1].kind, row.error.chain[-1].text) == ("fact", "vllm_extra")
    assert "requirements/cuda.txt" in row.error.chain[-1].note


def test_the_row_names_what_the_evidence_ends_in() -> None:
    document = _document()
    assert {row.architecture for row in document.rows} == {ARCHITECTURE}
    assert row_of(document, "cuda").owner == f"{DOTTED}.nvidia.Draft"
    assert row_of(document, "rocm").owner is None


UNBOUND = {
    INIT: """
        from typing import TYPE_CHECKING
        from vllm.platforms import current_platform

        if TYPE_CHECKING:
            from .common import Draft
        elif current_platform.device_type == "tpu":
            pass
        elif current_platform.is_rocm():
            from .amd import Draft
        else:
            from .nvidia import Draft

        if current_platform.is_cuda():
            from .nvidia import Draft as Other
        """
}


def test_a_name_that_is_missing_shows_the_branches_that_would_bind_it() -> None:
    row = row_of(coverage(UNBOUND), "tpu")
    not_reached = "not reached on tpu: a branch above is taken"
    assert row.verdict == "absent"
    assert _steps(row)[2:] == [
        ("branch", INIT, "TYPE_CHECKING", "false on tpu: not taken"),
        ("branch", INIT, 'current_platform.device_type == "tpu"', "true on tpu: taken"),
        ("branch", INIT, "current_platform.is_rocm()", not_reached),
        ("branch", INIT, "from .nvidia import Draft", f"the else branch, {not_reached}"),
    ]


def test_a_getattr_that_refuses_a_name_shows_the_raise() -> None:
    tree = {INIT: "def __getattr__(name):\n    raise AttributeError(f'no {name} here')\n"}
    row = row_of(coverage(tree), "cuda")
    assert (row.verdict, row.error and row.error.message) == ("absent", "no Draft here")
    assert _steps(row)[2:] == [
        ("raise", INIT, "raise AttributeError(f'no {name} here')", "AttributeError: no Draft here")
    ]


def test_a_name_bound_to_none_shows_the_binding() -> None:
    tree = {INIT: UNBOUND[INIT].replace("pass", "Draft = None")}
    row = row_of(coverage(tree), "tpu")
    assert row.evidence[-1].text == "Draft = None"
    assert (row.verdict, row.hasattr, row.error) == ("absent", False, None)
