"""A module that raises on an open branch leaves its doubt with everyone who imports it."""

from __future__ import annotations

import pytest
from trees.minivllm import INIT, WITH_METHOD, coverage, row_of

from auditor.request import Request

ONE, SHAKY = "vllm/models/draft/one.py", "vllm/models/draft/shaky.py"
LAST = "vllm/models/draft/last.py"

RAISES = """
import os
if os.environ.get("VLLM_SWITCH", "1") == "1":
    raise RuntimeError("not here")
"""


def verdict(shaky: str, init: str) -> str:
    tree = {INIT: init, ONE: WITH_METHOD, SHAKY: shaky, LAST: "from . import shaky\n"}
    return row_of(coverage(tree, Request(platforms=("cuda",))), "cuda").verdict


@pytest.mark.parametrize(
    "first",
    [
        "from . import shaky",
        "from . import last",
        "try:\n    from . import shaky\nexcept RuntimeError:\n    pass\nfrom . import last",
    ],
    ids=["imported", "imported by another", "imported before in a try"],
)
def test_whoever_imports_it_may_fail(first: str) -> None:
    init = f"{first}\nfrom .one import Draft\n"
    assert verdict(RAISES, init) == "?"
    assert verdict("", init) == "yes?"
