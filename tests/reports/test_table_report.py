from __future__ import annotations

import pytest
from msgspec.structs import replace

from auditor.coverage import UndecidedItem
from auditor.reports import table

from .samples import PLATFORMS, decided, document, eagle, mtp, named, open_row, v32

WIDTHS = [80, 100, 120, 160, 200, 240]


def test_each_platform_has_one_summary_line() -> None:
    text = table.render(decided(), width=120)
    assert "\ncuda: 2 of 3 satisfy the guard, 1 lack it, 0 cannot be loaded\n" in text
    assert "\nrocm: 1 of 3 satisfy the guard, 1 lack it, 1 cannot be loaded\n" in text


def test_undecided_rows_are_counted_apart() -> None:
    rows = [make("rocm") for make in (eagle, mtp, v32, open_row)]
    text = table.render(document(*rows, platforms=("rocm",)), width=120)
    assert "rocm: 1 of 4 satisfy the guard, 1 lack it, 1 cannot be loaded, 1 undecided\n" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_asked(width: int) -> None:
    lines = table.render(decided(), width=width).splitlines()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(width: int) -> None:
    text = table.render(decided(), width=width)
    squeezed = "".join(text.split())
    for word in ("DeepseekV32MTPModel", "deepseek_v32.nvidia.mtp.DeepseekV32MTP", "'deep_gemm'"):
        assert word in squeezed
    assert "…" not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_every_cell_is_on_the_line_of_its_architecture(width: int) -> None:
    lines = table.render(decided(), width=width).splitlines()
    row = next(line for line in lines if line.startswith("DeepseekV32MTPModel"))
    assert row.split()[1:7] == ["unsafe", *["import"] * 5]


def test_a_long_name_takes_a_line_of_its_own_and_keeps_its_cells() -> None:
    coverage = named("X" * 200)
    text = table.render(coverage, width=80)
    assert "".join(text.split()).count("X" * 200) >= 1
    assert max(map(len, text.splitlines())) <= 80


def test_platforms_are_named_where_they_differ() -> None:
    text = table.render(decided(), width=200)
    assert "deepseek_v32.nvidia.mtp.DeepseekV32MTP [cuda]" in text
    assert "[rocm xpu cpu tpu oot]" in text
    assert "deepseek_mtp.DeepSeekMTP [" not in text


def test_reasons_that_differ_in_the_platform_alone_are_said_once() -> None:
    rows = [
        replace(open_row(name), reason=f"nothing says whether torch is installed on {name}")
        for name in ("rocm", "xpu")
    ]
    text = table.render(document(*rows, platforms=("rocm", "xpu")), width=160)
    assert text.count("whether torch is installed here") == 1
    assert "[rocm" not in text


def test_the_provider_of_the_method_is_named() -> None:
    text = table.render(decided(), width=200)
    assert "LocalArgmaxMixin" in text
    assert "own" in text


def test_the_legend_explains_the_verdicts_that_occur_and_no_other() -> None:
    text = table.render(decided(), width=120)
    assert "no      lacks the method" in text
    assert "NotImplementedError" not in text


def test_without_color_there_are_no_escapes_and_with_it_the_words_stay() -> None:
    assert "\x1b" not in table.render(decided(), width=120)
    colored = table.render(decided(), width=120, color=True)
    assert "\x1b[" in colored
    assert "unsafe" in colored


def test_text_of_the_tree_is_shown_literally() -> None:
    text = table.render(named("[red]a\x1b[31mb\x9b\u202e"), width=120)
    assert r"[red]a\x1b[31mb\x9b\u202e" in text
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_only_keeps_an_architecture_with_one_such_cell_whole() -> None:
    text = table.render(decided(), width=120, only=["import"])
    assert "1 of 3 architectures, those with import" in text
    assert "DeepseekV32MTPModel" in text
    assert "EagleLlama" not in text
    assert "cuda: 2 of 3 satisfy" in text


def test_only_without_a_match_says_so() -> None:
    text = table.render(decided(), width=120, only=["stub"])
    assert "none of the 3 architectures has a cell with stub" in text


def test_an_empty_registry_says_so() -> None:
    assert "no architectures" in table.render(document(), width=120)


def test_what_was_not_decided_is_shown_with_its_place_and_the_rest_counted() -> None:
    items = tuple(
        UndecidedItem("condition", "vllm/a.py", line, "if X:", "X is not known", ("rocm",), ("A",))
        for line in range(1, 9)
    )
    text = table.render(document(mtp("cuda"), platforms=("cuda",), undecided=items), width=120)
    assert "Not decided: conditions left open (8, cells rest on 8 of them):" in text
    assert "vllm/a.py:1  if X: — X is not known (on rocm; 1 architecture depends on it)" in text
    assert "and 3 more; --format json lists all" in text
    assert "vllm/a.py:6" not in text


def test_conditions_that_a_cell_rests_on_come_first() -> None:
    items = tuple(
        UndecidedItem("condition", "vllm/a.py", line, "x", "why", ("cuda",), names)
        for line, names in ((1, ()), (2, ("A",)))
    )
    text = table.render(document(mtp("cuda"), platforms=("cuda",), undecided=items), width=120)
    assert "Not decided: conditions left open (2, cells rest on 1 of them):" in text
    assert text.index("vllm/a.py:2") < text.index("vllm/a.py:1")
    idle = document(mtp("cuda"), platforms=("cuda",), undecided=items[:1])
    assert "conditions left open (1, no cell rests on them):" in table.render(idle, width=120)


def test_a_table_with_nothing_open_says_that_too() -> None:
    assert "Not decided: nothing" in table.render(decided(), width=120)


def test_notes_and_skipped_imports_stand_above_the_table() -> None:
    coverage = replace(decided(), notes=("this is old",), imports="skipped")
    lines = table.render(coverage, width=120).splitlines()
    assert lines[1] == "Note: this is old"
    assert lines[2].startswith("Note: imports were not run")


def test_the_same_document_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = table.render(decided(), width=120)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert table.render(decided(), width=120) == before
    assert PLATFORMS[0] in before
