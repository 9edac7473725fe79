"""What code outside the tree does is taken to go well, unless a handler says what happens else."""

from __future__ import annotations

import pytest
from trees.minivllm import INIT, WITH_METHOD, WITHOUT_METHOD, coverage, row_of

from auditor.coverage import Coverage
from auditor.request import Request

ONE, OTHER = "vllm/models/draft/one.py", "vllm/models/draft/other.py"


def audited(text: str, **env: str) -> Coverage:
    tree = {INIT: text, ONE: WITH_METHOD, OTHER: WITHOUT_METHOD}
    return coverage(tree, Request(platforms=("cuda",), env=env))


def verdict(text: str, **env: str) -> str:
    return row_of(audited(text, **env), "cuda").verdict


def dispatch(body: str, types: str) -> str:
    return f"""
import os
import torch
try:
    {body}
except {types}:
    from .other import Draft
else:
    from .one import Draft
"""


@pytest.mark.parametrize(
    ("body", "types"),
    [
        ("torch.gone", "AttributeError"),
        ("torch.ops.gone", "(AttributeError, RuntimeError)"),
        ("torch.gone()", "(RuntimeError, AttributeError)"),
        ("os.environ['VLLM_SWITCH']", "KeyError"),
    ],
)
def test_a_handler_that_may_run_leaves_the_class_open(body: str, types: str) -> None:
    assert verdict(dispatch(body, types)) == "?"


@pytest.mark.parametrize(
    ("body", "types"),
    [
        ("from torch.nn import Gone", "ImportError"),
        ("from torch.nn import Gone", "AttributeError"),
        ("torch.gone", "(ImportError, KeyError)"),
        ("torch.ops.gone", "Exception"),
        ("torch.gone()", "RuntimeError"),
        ("torch.cuda.device_count()", "(ValueError, OSError)"),
        ("torch.a().b()", "Exception"),
        ("os.listdir('/opt')", "OSError"),
        ("import torch", "ImportError"),
        ("os.path.join('a', 'b')", "Exception"),
        ("torch.__version__", "Exception"),
    ],
)
def test_a_handler_of_something_else_decides_nothing(body: str, types: str) -> None:
    assert verdict(dispatch(body, types)) == "yes?"


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.gone()\nfrom torch.nn import Gone\n",
        "import torch\ntry:\n    torch.gone()\nfinally:\n    pass\n",
        "import torch\ntry:\n    torch.gone()\nexcept Exception:\n    print('no')\n    raise\n",
    ],
)
def test_what_would_end_the_import_is_taken_to_go_well(text: str) -> None:
    assert verdict(f"{text}from .one import Draft\n") == "yes?"


def test_an_exception_that_a_handler_makes_of_it_is_listed() -> None:
    raising = "raise RuntimeError('too old')"
    document = audited(
        f"import torch\ntry:\n    torch.gone\nexcept AttributeError:\n    {raising}\n"
        "from .one import Draft\n"
    )
    assert row_of(document, "cuda").verdict == "yes?"
    (item,) = [item for item in document.undecided if item.text == "torch.gone"]
    assert "RuntimeError: too old" in item.reason


def test_what_may_really_fail_is_not_passed_over_with_it() -> None:
    text = """
import torch
try:
    torch.gone()
    import a_module_that_no_rule_names
except (AttributeError, ImportError):
    raise RuntimeError('needs it')
from .one import Draft
"""
    assert verdict(text) == "?"


def test_what_is_raised_where_nothing_fails_is_not_passed_over() -> None:
    text = """
import torch
try:
    import a_module_that_no_rule_names
    nowhere
except NameError:
    raise
except Exception:
    pass
from .one import Draft
"""
    assert verdict(text) == "?"


def test_a_variable_that_must_be_set() -> None:
    text = "import os\nos.environ['VLLM_SWITCH']\nfrom .one import Draft\n"
    assert verdict(text) == "?"
    assert verdict(text, VLLM_SWITCH="1") == "yes?"
