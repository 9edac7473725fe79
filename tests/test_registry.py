"""The registry tables: every way to build one, and every way in which it cannot be read."""

from __future__ import annotations

import pytest
from trees.minivllm import ARCHITECTURE, REGISTRY, coverage, files, line_of

from auditor.coverage import Coverage
from auditor.errors import RegistryError

ONE = '"DraftModel": ("vllm.models.draft.nvidia", "Draft"),'
TWO = '"OtherModel": ("vllm.models.draft.amd", "Draft"),'
BOTH = {
    "DraftModel": "vllm.models.draft.nvidia.Draft",
    "OtherModel": "vllm.models.draft.amd.Draft",
}


def _table(text: str) -> Coverage:
    return coverage({REGISTRY: text})


def _classes(document: Coverage, platform: str = "cuda") -> dict[str, str]:
    return {
        row.architecture: f"{row.module}.{row.class_}"
        for row in document.rows
        if row.platform == platform
    }


@pytest.mark.parametrize(
    "text",
    [
        f"_SPECULATIVE_DECODING_MODELS = {{\n    {ONE}\n    {TWO}\n}}\n",
        f"_SPECULATIVE_DECODING_MODELS: dict[str, tuple[str, str]] = {{{ONE} {TWO}}}\n",
        f"_OTHER = {{{TWO}}}\n_SPECULATIVE_DECODING_MODELS = {{{ONE} **_OTHER}}\n",
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE}}} | {{{TWO}}}\n",
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE}}}\n"
        f"_SPECULATIVE_DECODING_MODELS.update({{{TWO}}})\n",
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE}}}\n_SPECULATIVE_DECODING_MODELS |= {{{TWO}}}\n",
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE}}}\n"
        '_SPECULATIVE_DECODING_MODELS["OtherModel"] = ("vllm.models.draft.amd", "Draft")\n',
        '_SPECULATIVE_DECODING_MODELS = dict(DraftModel=("vllm.models.draft.nvidia", "Draft"), '
        'OtherModel=("vllm.models.draft.amd", "Draft"))\n',
        f"if True:\n    _SPECULATIVE_DECODING_MODELS = {{{ONE} {TWO}}}\n"
        "else:\n    _SPECULATIVE_DECODING_MODELS = {}\n",
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE} {TWO}}}\n"
        '_VLLM_MODELS = {**_SPECULATIVE_DECODING_MODELS, "Gone": ("a", "B")}\n',
    ],
    ids=[
        "a display", "annotated", "unpacked", "a union", "updated", "an in-place union",
        "an item", "a call of dict", "in a branch", "merged elsewhere",
    ],
)  # fmt: skip
def test_a_table_is_read_as_python_builds_it(text: str) -> None:
    assert _classes(_table(text)) == BOTH


@pytest.mark.parametrize(
    "text",
    [
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE} {TWO}}}\n"
        '_SPECULATIVE_DECODING_MODELS.pop("OtherModel")\n',
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE} {TWO}}}\n"
        'del _SPECULATIVE_DECODING_MODELS["OtherModel"]\n',
    ],
)
def test_an_entry_that_is_taken_out_again_is_gone(text: str) -> None:
    assert set(_classes(_table(text))) == {ARCHITECTURE}


def test_a_table_may_differ_by_platform() -> None:
    text = (
        "from vllm.platforms import current_platform\n"
        f"_SPECULATIVE_DECODING_MODELS = {{{ONE}}}\n"
        "if current_platform.is_rocm():\n"
        f"    _SPECULATIVE_DECODING_MODELS.update({{{TWO}}})\n"
    )
    document = _table(text)
    assert set(_classes(document, "rocm")) == set(BOTH)
    assert set(_classes(document, "cuda")) == {ARCHITECTURE}


def test_the_last_entry_of_a_key_counts_and_its_line_is_shown() -> None:
    text = (
        "_SPECULATIVE_DECODING_MODELS = {\n"
        '    # "DraftModel": ("vllm.models.gone", "Draft"),\n'
        f"    {ONE}\n"
        "}\n"
    )
    (step, *_) = _table(text).rows[0].evidence
    line = line_of({REGISTRY: text}, REGISTRY, f"    {ONE}")
    assert (step.kind, step.path, step.line, step.text) == ("registry", REGISTRY, line, ONE)


@pytest.mark.parametrize(
    "entry",
    ['"BrokenModel": "vllm.models.draft"', '"BrokenModel": ("vllm.models.draft",)',
     '"BrokenModel": None', '"BrokenModel": ("vllm.models.draft", None)',
     '"BrokenModel": _made()', '7: ("vllm.models.draft", "Draft")'],
)  # fmt: skip
def test_an_entry_that_is_no_pair_of_strings_is_listed_and_the_others_are_answered(
    entry: str,
) -> None:
    text = f"_SPECULATIVE_DECODING_MODELS = {{\n    {ONE}\n    {entry},\n    {TWO}\n}}\n"
    document = _table(f"def _made():\n    return object()\n\n{text}")
    (item,) = [item for item in document.undecided if item.kind == "table"]
    assert _classes(document) == BOTH
    assert (item.path, item.text) == (REGISTRY, entry.partition(":")[0].strip('"'))
    assert item.reason == "the entry is not a pair of strings"


NOT_READABLE = [
    ("_SPECULATIVE_DECODING_MODELS = load()\n", "name 'load' is not defined", 1),
    ("import json\n_SPECULATIVE_DECODING_MODELS = json.load(open('x'))\n", "json.load", 2),
    ("_SPECULATIVE_DECODING_MODELS = None\n", "is None", 1),
    ("_SPECULATIVE_DECODING_MODELS = []\n", "is a list", 1),
    ("# tables\n_SPECULATIVE_DECODING_MODELS = 'a'\n", "is a str", 2),
    ("raise RuntimeError('no tables')\n", "RuntimeError: no tables", 1),
    ("_SPECULATIVE_DECODING_MODELS = {\n", "was never closed", 1),
    ("import os\nif os.environ['A']:\n    _SPECULATIVE_DECODING_MODELS = {}\n", "os.environ", 2),
    ("import os\nif os.cpu_count() > 4:\n    _SPECULATIVE_DECODING_MODELS = {}\n"
     "else:\n    _SPECULATIVE_DECODING_MODELS = {'A': ('b', 'C')}\n", "os.cpu_count() > 4", 2),
    ("_SPECULATIVE_DECODING_MODELS = {f(): 1 for f in (print,)}\n", "for f in (print,)", 1),
    ("_TABLE = {}\n", "there is no table _SPECULATIVE_DECODING_MODELS", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "line"), NOT_READABLE)
def test_a_table_that_cannot_be_read_is_an_error_with_place_and_next_step(
    text: str, what: str, line: int | None
) -> None:
    with pytest.raises(RegistryError) as caught:
        _table(text)
    assert what in caught.value.what
    assert caught.value.where == (f"{REGISTRY}:{line}" if line else REGISTRY)
    assert caught.value.next_step


def test_a_tree_without_a_registry_says_so() -> None:
    from auditor.api import Request, audit
    from auditor.sources.tree import MemoryTree, Source

    kept = {path: text for path, text in files({}).items() if path != REGISTRY}
    source = Source("folder", None, "x", "y", MemoryTree(kept))
    with pytest.raises(RegistryError) as caught:
        audit(source, Request())
    assert caught.value.where == REGISTRY
    assert "--vllm" in caught.value.next_step
