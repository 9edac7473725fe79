from __future__ import annotations

import csv as stdlib_csv
import io
import re

import pytest
from msgspec.structs import replace

from auditor.coverage import ErrorInfo, Row, Step
from auditor.reports import csv, explain, markdown
from auditor.reports.markdown import code
from auditor.reports.names import hint, nearest
from auditor.reports.text import literal

from .samples import GUARD, decided, document, eagle, mtp, named, v32

HOSTILE = "a|b`c``d\n[x](y)<script>@someone\x1b[2J"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/]", "plain [bold]text[/]"),
        ("für é 漢", "für é 漢"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb\u200b", r"a\u202eb\u200b"),
        ("\udc80", r"\udc80"),
    ],
)
def test_literal_text_shows_what_it_must_not_do(text: str, shown: str) -> None:
    assert literal(text) == shown


def test_csv_has_one_line_a_row_after_the_header() -> None:
    rows = list(stdlib_csv.reader(io.StringIO(csv.render(decided()))))
    assert len(rows) == 1 + 18
    assert rows[0] == list(csv.HEADER)
    v32 = dict(zip(rows[0], next(r for r in rows if r[:2] == ["DeepseekV32MTPModel", "rocm"])))  # noqa: B905
    assert v32["hasattr"] == ""
    assert v32["error_type"] == "ModuleNotFoundError"


def test_csv_spells_hasattr_as_true_and_false() -> None:
    coverage = document(eagle("cuda"), mtp("cuda"), platforms=("cuda",))
    rows = list(stdlib_csv.DictReader(io.StringIO(csv.render(coverage))))
    assert [row["hasattr"] for row in rows] == ["false", "true"]


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1"])
def test_csv_never_starts_a_formula(start: str) -> None:
    rows = list(stdlib_csv.DictReader(io.StringIO(csv.render(named(start)))))
    assert rows[0]["module"] == f"'{literal(start)}"


@pytest.mark.parametrize("text", ['a,"b"', "a\nb", "a;b", "\x1b[0m"])
def test_csv_keeps_a_row_on_one_line(text: str) -> None:
    rendered = csv.render(named(text))
    assert len(rendered.splitlines()) == 2
    assert "\x1b" not in rendered
    assert next(stdlib_csv.DictReader(io.StringIO(rendered)))["class"] == literal(text)


def _cells(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line)[1:-1]


def test_markdown_tables_have_the_same_number_of_cells_in_every_line() -> None:
    for coverage in (decided(), named(HOSTILE)):
        lines = [line for line in markdown.render(coverage).splitlines() if line.startswith("|")]
        assert len(lines) >= 3
        assert {len(_cells(line)) for line in lines} == {len(coverage.platforms) + 3}


def test_markdown_shows_names_as_code_and_nothing_else_of_the_tree() -> None:
    text = markdown.render(named(HOSTILE))
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "script" not in outside
    assert "@someone" not in outside
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b", "`a_b`"),
        ("a|b", r"`a\|b`"),
        ("a`b", "``a`b``"),
        ("`a`", "`` `a` ``"),
        ("", ""),
    ],
)
def test_code_spans(text: str, shown: str) -> None:
    assert code(text) == shown


def test_markdown_has_the_summary_and_what_was_not_decided() -> None:
    text = markdown.render(named("x"))
    assert "- cuda: 0 of 1 satisfy the guard, 0 lack it, 1 cannot be loaded\n" in text
    assert "Not decided: files that could not be read or parsed (1):" in text
    assert "none of the 3 architectures" in markdown.render(decided(), only=["stub"])


def test_explain_groups_platforms_with_the_same_evidence() -> None:
    text = explain.render(decided(), "DeepseekV32MTPModel", width=140)
    assert "\ncuda: unsafe\n" in text
    assert "\nrocm, xpu, cpu, tpu, oot: import\n" in text


def test_explain_shows_steps_in_order_then_the_verdict_then_the_chain() -> None:
    text = explain.render(decided(), "DeepseekV32MTPModel", width=140)
    block = text[text.index("rocm, xpu") :]
    wanted = ["registry  vllm", "branch    vllm", "=> import", "No module named", "1. ", "2. "]
    places = [block.index(part) for part in wanted]
    assert places == sorted(places)


def test_explain_ends_a_no_with_what_the_engine_would_raise() -> None:
    text = explain.render(decided(), "DeepSeekMTPModel", width=200)
    assert f"the engine would raise: {GUARD.note}  ({GUARD.path}:{GUARD.line})" in text
    assert "guard  " not in text


@pytest.mark.parametrize(
    ("verdict", "said"),
    [("import", "loading it fails with"), ("absent", "asking for the class fails with")],
)
def test_explain_says_what_has_failed(verdict: str, said: str) -> None:
    row = replace(v32("rocm"), verdict=verdict, error=ErrorInfo("AttributeError", "no Draft", ()))
    text = explain.render(document(row, platforms=("rocm",)), row.architecture, width=140)
    assert f"{said} AttributeError: no Draft" in text


def test_explain_groups_platforms_whose_notes_differ_in_the_name_alone() -> None:
    def row(platform: str) -> Row:
        branch = Step("branch", "vllm/a.py", 3, "if current_platform.is_cuda():", "")
        taken = replace(branch, note=f"false on {platform}: not taken")
        chain = (Step("raise", "vllm/a.py", 9, "raise X", f"no such thing on {platform}"),)
        error = ErrorInfo("ImportError", "nope", chain)
        return replace(v32(platform), error=error, evidence=(taken, *chain))

    coverage = document(row("rocm"), row("xpu"), platforms=("rocm", "xpu"))
    text = explain.render(coverage, "DeepseekV32MTPModel", width=140)
    assert "\nrocm, xpu: import\n" in text
    assert "false here: not taken" in text
    assert text.count("vllm/a.py:9") == 1


@pytest.mark.parametrize("width", [80, 120, 200])
def test_explain_keeps_the_width_and_loses_nothing(width: int) -> None:
    text = explain.render(named("y" * 150, "no"), "y" * 150, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "y" * 150 in "".join(text.split())
    assert "…" not in text


def test_explain_shows_text_of_the_tree_literally() -> None:
    text = explain.render(named("[red]\x1b[31m"), "[red]\x1b[31m", width=120)
    assert "[red]\\x1b[31m" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("eaglellamaforcausallm", ["EagleLlamaForCausalLM"]),
        ("EagleLlamaForCausal", ["EagleLlamaForCausalLM"]),
        ("Eagel*", ["EagleLlamaForCausalLM"]),
        ("DeepSekMTP", ["DeepSeekMTPModel"]),
        ("zzz", []),
    ],
)
def test_nearest_names(name: str, wanted: list[str]) -> None:
    assert nearest(name, ["DeepSeekMTPModel", "EagleLlamaForCausalLM"]) == wanted


def test_hint_lists_a_few_names_but_not_many() -> None:
    assert hint("zzz", ["aa", "bb"]) == "Known: aa, bb."
    assert hint("zzz", [f"a{n}" for n in range(50)]) == ""
    assert hint("zzz", []) == ""
