from __future__ import annotations

import pytest

from auditor.errors import UsageError
from auditor.reports.section import checked_name, with_section

PAGE = b"# Title\n\n<!-- gen:draftaudit -->\nold\n<!-- /gen:draftaudit -->\n\nRest \xff\xfe.\n"


def written(page: bytes, text: str = "| a |\n", name: str = "draftaudit") -> bytes:
    return with_section(page, name, text, "docs/page.md")


def test_only_what_is_between_the_markers_changes() -> None:
    assert written(PAGE) == (
        b"# Title\n\n<!-- gen:draftaudit -->\n\n| a |\n\n<!-- /gen:draftaudit -->\n"
        b"\nRest \xff\xfe.\n"
    )


def test_writing_twice_changes_nothing() -> None:
    once = written(PAGE, "a\n\nb\n")
    assert written(once, "a\n\nb\n") == once


def test_line_ends_of_the_page_are_kept() -> None:
    page = PAGE.replace(b"\n", b"\r\n")
    assert written(page, "a\nb\n").count(b"\n") == written(page, "a\nb\n").count(b"\r\n") == 10


def test_the_end_of_a_page_without_a_line_end_is_kept() -> None:
    page = b"<!-- gen:draftaudit -->\n<!-- /gen:draftaudit -->"
    assert written(page, "a") == b"<!-- gen:draftaudit -->\n\na\n\n<!-- /gen:draftaudit -->"


@pytest.mark.parametrize(
    "markers",
    [
        (b"<!--gen:draftaudit-->", b"<!--/gen:draftaudit-->"),
        (b"  <!-- gen:draftaudit -->  ", b"<!-- /gen:draftaudit -->\t"),
    ],
)
def test_spaces_in_markers_are_kept(markers: tuple[bytes, bytes]) -> None:
    page = b"\n".join((*markers, b"end"))
    assert written(page, "x") == b"\n".join((markers[0], b"", b"x", b"", markers[1], b"end"))


def test_a_byte_order_mark_before_a_marker_is_kept() -> None:
    assert written(b"\xef\xbb\xbf" + PAGE[9:], "x").startswith(
        b"\xef\xbb\xbf<!-- gen:draftaudit -->\n\nx\n"
    )


def test_the_other_sections_of_a_page_are_left_alone() -> None:
    other = b"<!-- gen:other -->\nkeep\n<!-- /gen:other -->\n"
    assert written(other + PAGE + b"", "x").startswith(other)
    assert b"keep" not in written(other + PAGE, "x", "other")


@pytest.mark.parametrize("fence", [b"```", b"~~~~", b"   ```markdown"])
def test_markers_in_a_fenced_block_are_examples(fence: bytes) -> None:
    example = fence + b"\n<!-- gen:draftaudit -->\n" + fence.split(b"m")[0] + b"\n"
    assert written(example + PAGE).startswith(example)
    with pytest.raises(UsageError, match="no line is"):
        written(fence + b"\n" + PAGE)


@pytest.mark.parametrize(
    "line", [b"    <!-- gen:draftaudit -->\n", b"Text <!-- gen:draftaudit -->\n"]
)
def test_markers_that_do_not_stand_alone_are_text(line: bytes) -> None:
    assert written(line + PAGE).startswith(line)


START, END = b"<!-- gen:draftaudit -->\n", b"<!-- /gen:draftaudit -->\n"
OTHER, OTHER_END = b"<!-- gen:other -->\n", b"<!-- /gen:other -->\n"


@pytest.mark.parametrize(
    ("page", "where", "what"),
    [
        (b"text\n", "docs/page.md", "no line is <!-- gen:draftaudit -->"),
        (b"", "docs/page.md", "no line is"),
        (
            b"a\n" + START + b"b\n",
            "docs/page.md:2",
            "has no <!-- /gen:draftaudit --> before the end",
        ),
        (b"a\n" + END, "docs/page.md:2", "closes nothing"),
        (START + END + START + END, "docs/page.md:3", "a second <!-- gen:draftaudit -->"),
        (START + START + END, "docs/page.md:1", "before <!-- gen:draftaudit --> at line 2"),
        (START + END + END, "docs/page.md:3", "closes nothing"),
        (START + OTHER + END + OTHER_END, "docs/page.md:1", "before <!-- gen:other --> at line 2"),
        (START + END + OTHER, "docs/page.md:3", "has no <!-- /gen:other -->"),
    ],
)
def test_markers_that_are_not_sound_are_an_error_with_file_and_line(
    page: bytes, where: str, what: str
) -> None:
    with pytest.raises(UsageError) as caught:
        written(page)
    assert caught.value.where == where
    assert what in caught.value.what


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(UsageError, match="Did you mean draftaudit"):
        written(PAGE, name="draftaduit")


@pytest.mark.parametrize("name", ["", "a b", "a-->", "é", "a\n"])
def test_a_name_that_no_marker_can_hold_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a name"):
        checked_name(name)
