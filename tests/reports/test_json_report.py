from __future__ import annotations

import json as stdlib_json
import unicodedata

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.coverage import (
    VERDICTS,
    Coverage,
    ErrorInfo,
    Finding,
    Row,
    SourceInfo,
    Step,
    UndecidedItem,
    from_json,
    json_schema,
    sorted_coverage,
)
from auditor.reports import csv, explain, json, markdown, table

from .samples import decided, named

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LINE = st.integers(0, 10_000)
NAMES = st.lists(TEXT, max_size=2).map(tuple)
MAYBE = st.none() | TEXT
STEPS = st.lists(st.builds(Step, TEXT, TEXT, LINE, TEXT, TEXT), max_size=3).map(tuple)
KINDS = st.sampled_from(["file", "condition", "base", "table", "source"])
ROWS = st.builds(
    Row,
    architecture=TEXT,
    platform=st.sampled_from(["cuda", "rocm"]),
    verdict=st.sampled_from(list(VERDICTS)),
    hasattr=st.sampled_from([True, False, None]),
    module=MAYBE,
    class_=MAYBE,
    owner=MAYBE,
    error=st.none() | st.builds(ErrorInfo, TEXT, TEXT, STEPS),
    shape=MAYBE,
    equivalence=MAYBE,
    reason=MAYBE,
    findings=NAMES,
    evidence=STEPS,
)
SEVERITY = st.sampled_from(["error", "warning", "note"])
COVERAGES = st.builds(
    Coverage,
    schema_version=st.just("1.0"),
    capability=TEXT,
    registry=TEXT,
    source=st.builds(SourceInfo, TEXT, MAYBE, TEXT),
    platforms=st.just(("cuda", "rocm")),
    imports=st.sampled_from(["run", "skipped"]),
    notes=NAMES,
    rows=st.lists(ROWS, max_size=4).map(tuple),
    findings=st.lists(
        st.builds(Finding, TEXT, SEVERITY, TEXT, TEXT, LINE, NAMES, NAMES), max_size=2
    ).map(tuple),
    undecided=st.lists(
        st.builds(UndecidedItem, KINDS, TEXT, LINE, TEXT, TEXT, NAMES, NAMES), max_size=3
    ).map(tuple),
).map(sorted_coverage)

SCHEMA = jsonschema.Draft202012Validator(json_schema())


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@given(COVERAGES)
def test_every_document_survives_the_round_trip_and_matches_the_schema(coverage: Coverage) -> None:
    text = json.render(coverage)
    assert from_json(text.encode()) == coverage
    assert json.render(from_json(text.encode())) == text
    SCHEMA.validate(stdlib_json.loads(text))


@given(COVERAGES, st.integers(60, 200))
@settings(deadline=None, max_examples=30)
def test_every_document_can_be_shown_without_control_characters(
    coverage: Coverage, width: int
) -> None:
    shown = [
        table.render(coverage, width=width),
        markdown.render(coverage),
        csv.render(coverage),
        json.render(coverage),
        *(explain.render(coverage, row.architecture, width=width) for row in coverage.rows),
    ]
    for text in shown:
        acting = {char for char in text if unicodedata.category(char) == "Cc"} - {"\n"}
        assert not acting | {"\u202e", "\u2028", "\u200b"} & set(text)


@pytest.mark.parametrize("field", ["class", "hasattr", "evidence", "error", "owner"])
def test_a_row_has_the_promised_fields(field: str) -> None:
    row = stdlib_json.loads(json.render(decided()))["rows"][0]
    assert field in row


def test_characters_a_terminal_acts_on_are_escaped_and_come_back() -> None:
    coverage = named("\x7f\x9b31m\u202e\u2028")
    text = json.render(coverage)
    assert not {"\x7f", "\x9b", "\u202e", "\u2028"} & set(text)
    assert from_json(text.encode()) == coverage


def test_a_document_of_another_shape_is_refused_by_the_schema() -> None:
    document = stdlib_json.loads(json.render(decided()))
    document["rows"][0]["verdict"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(document)
