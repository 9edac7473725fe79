from __future__ import annotations

import re
from collections import Counter

import pytest
from msgspec.structs import replace

from auditor.coverage import Coverage, UndecidedItem
from auditor.reports import github, summary

from .hosting import TEXTS, finding, report, with_findings
from .samples import decided, document, named

#: A workflow command as the runner reads it (``ActionCommand.TryParseV2``).
_COMMAND = re.compile(r"::(?P<command>\w+)(?: (?P<properties>.*?))?::(?P<data>.*)")
HOSTILE = "a|b`c``d\n::error::x\r%0A,:<script>@someone\x1b[2J\u202e"


def _unescaped(text: str, pairs: dict[str, str]) -> str:
    for code, char in pairs.items():
        text = text.replace(code, char)
    return text.replace("%25", "%")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """What the runner understands of a log."""
    found = []
    for line in text.splitlines():
        match = _COMMAND.fullmatch(line)
        assert match is not None, line
        pairs = [pair.partition("=") for pair in match["properties"].split(",")]
        properties = {
            key: _unescaped(value, {"%3A": ":", "%2C": ",", "%0D": "\r", "%0A": "\n"})
            for key, _, value in pairs
        }
        data = _unescaped(match["data"], {"%0D": "\r", "%0A": "\n"})
        found.append((match["command"], properties, data))
    return found


def told(coverage: Coverage, prefix: str = "") -> list[tuple[str, dict[str, str], str]]:
    return commands(github.render(report(coverage), TEXTS, prefix=prefix))


def test_an_annotation_has_file_line_and_title() -> None:
    first = told(replace(document(), findings=(finding(4, "SD101"),)), "sub/")[0]
    assert first == (
        "error",
        {
            "file": "sub/vllm/v1/spec_decode/p004.py",
            "line": "5",
            "title": "SD101 call does not fit",
        },
        "Proposer4 calls it wrongly (DeepSeekMTPModel, on cuda, rocm)",
    )


def test_names_of_the_tree_cannot_end_a_command_or_add_one() -> None:
    coverage = replace(
        named(HOSTILE, "no"),
        findings=(replace(finding(1, "SD101"), path=HOSTILE, message=HOSTILE),),
    )
    text = github.render(report(coverage), TEXTS)
    found = commands(text)
    assert [command for command, _, _ in found] == ["error", "warning", "notice"]
    assert all(properties.keys() <= {"file", "line", "title"} for _, properties, _ in found)
    shown = HOSTILE.encode("unicode_escape").decode().replace("\\\\", "\\")
    assert found[0][1]["file"] == shown
    assert found[0][2].startswith(shown)


def test_percent_signs_are_escaped_first() -> None:
    coverage = replace(document(), findings=(finding(1, "SD101", "100%0A"),))
    assert "100%250A" in github.render(report(coverage), TEXTS)
    assert told(coverage)[0][2].startswith("Proposer1 100%0A")


def test_of_500_findings_the_most_severe_are_shown_and_the_rest_is_one_line() -> None:
    found = told(with_findings(500))
    count = Counter(command for command, _, _ in found)
    assert count == {"error": 10, "warning": 10, "notice": 10}
    order = [command for command, _, _ in found]
    assert order == sorted(order, key=("error", "warning", "notice").index)
    last = found[-1]
    # The sample's own cells are an error and two warnings.
    assert last[1] == {"title": "draftaudit"}
    assert "167 errors, 169 warnings, 167 notes" in last[2]
    assert last[2].endswith("; 474 of them are not shown here")


def test_without_a_problem_there_is_one_line() -> None:
    ((command, properties, text),) = told(document())
    assert (command, properties) == ("notice", {"title": "draftaudit"})
    assert text.endswith(": no problem")


def test_the_line_says_how_much_was_not_decided() -> None:
    item = UndecidedItem("condition", "vllm/c.py", 2, "x()", "not followed")
    assert told(document(undecided=(item,)))[-1][2].endswith("not decided: 1")


# ---- the summary of a job --------------------------------------------------------------------


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")][2:]


def test_the_summary_lists_every_problem_once() -> None:
    text = summary.render(report(with_findings(500)))
    assert len(_rows(text)) == 503
    assert _rows(text)[0].startswith("| error | SD101 |")
    assert "Cut to keep" not in text
    assert len(text.encode()) <= summary.LIMIT


def test_500_long_findings_are_cut_between_rows_by_bytes() -> None:
    # 3 bytes a character: a count of characters would be a third of it.
    coverage = with_findings(500, "漢" * 2000)
    text = summary.render(report(coverage))
    size = len(text.encode())
    rows = _rows(text)
    assert summary.LIMIT - 10_000 < size <= summary.LIMIT
    assert 0 < len(rows) < 503
    assert all(re.search(r" \| `vllm/[^`]*:\d+` \|$", row) for row in rows)
    assert f"{503 - len(rows)} of 503 rows are left out" in text
    assert text.endswith("Nothing was left open.\n")


@pytest.mark.parametrize("room", [0, 100, 700, 1000, 5_000, 50_000])
def test_the_summary_keeps_to_whatever_room_there_is(room: int) -> None:
    text = summary.render(report(with_findings(500)), room=room)
    assert len(text.encode()) <= room
    assert text == "" or text.startswith("### draftaudit")


def test_the_tables_of_a_hostile_tree_keep_their_cells() -> None:
    coverage = replace(named(HOSTILE, "import"), findings=(finding(1, "SD101", HOSTILE),))
    text = summary.render(report(coverage))
    rows = _rows(text)
    assert len(rows) == 2
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {6}
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "script" not in outside
    assert "\x1b" not in text


def test_the_summary_says_what_was_not_decided() -> None:
    items = tuple(
        UndecidedItem("condition", "vllm/c.py", n, "x()", "not followed", ("rocm",))
        for n in range(1, 61)
    )
    text = summary.render(report(document(undecided=items)))
    assert "Not decided: 60" in text
    assert "and 10 more" in text
    assert "`vllm/c.py:1 x(): not followed (on rocm)`" in text


def test_a_summary_without_problems_says_so() -> None:
    text = summary.render(report(document()))
    assert "No problem was found." in text
    assert "cuda: 0 of 0 satisfy the guard" in text
    assert _rows(summary.render(report(decided())))
