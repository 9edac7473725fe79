from __future__ import annotations

import base64
import hashlib
import json as stdlib_json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from trees.drifting import NORMED, PAIR, tree
from trees.minivllm import coverage

from auditor.changes import KINDS
from auditor.coverage import VERDICTS, Coverage, Row, VerdictName
from auditor.drift import drift
from auditor.errors import UsageError
from auditor.reports import html
from auditor.reports.html_changes import TITLES, Change, changes
from auditor.reports.html_chart import Counted, charts
from auditor.reports.html_data import Pool
from auditor.reports.html_view import CLASSES
from auditor.reports.text import literal

from .page import Elements, _value, data_of, earlier, told, two, versioned
from .samples import PLATFORMS, decided, document, mtp, named
from .test_json_report import COVERAGES

HOSTILE = "</script><script>alert(1)</script><!--\"'&\u202e\x1b[2J<img src=x onerror=alert(2)>"


def _cells(text: str) -> list[str]:
    return [
        said for attrs, said in Elements(text).of("td") if "c" in (attrs.get("class") or "").split()
    ]


def test_every_cell_says_its_verdict_in_the_markup() -> None:
    assert _cells(html.render([decided()])) == [row.verdict for row in decided().rows]


def test_the_table_names_its_rows_and_columns() -> None:
    heads = Elements(html.render([decided()])).of("th")
    assert sum(attrs.get("scope") == "col" for attrs, _ in heads) == len(PLATFORMS) + 2
    rows = [said for attrs, said in heads if attrs.get("scope") == "row"]
    assert rows == sorted({row.architecture for row in decided().rows})


def test_same_documents_same_bytes_in_any_order() -> None:
    assert html.render(two()) == html.render(two())
    assert html.render(two()) == html.render(two()[::-1])


def test_the_newest_version_comes_first_and_is_the_title() -> None:
    text = html.render([versioned(decided(), "0.9.2"), versioned(decided(), "0.10.0")])
    assert "<title>get_top_tokens: vllm 0.10.0</title>" in text
    assert text.index('data-version="1"') < text.index('data-version="0"')


def test_sources_without_a_version_stay_in_the_order_given() -> None:
    given_order = [versioned(decided(), None, "mine"), versioned(decided(), "0.1", "vllm 0.1")]
    names = [version["name"] for version in data_of(html.render(given_order))["versions"]]
    assert names == ["mine", "0.1"]


def test_two_sources_of_one_name_are_told_apart() -> None:
    same = [versioned(earlier(), "0.30.0"), versioned(decided(), "0.30.0")]
    names = [version["name"] for version in data_of(html.render(same))["versions"]]
    assert names == ["0.30.0 (1)", "0.30.0 (2)"]


def test_a_document_given_twice_counts_once() -> None:
    assert html.render([decided(), decided()]) == html.render([decided()])


def test_no_document_or_two_methods_are_refused() -> None:
    for coverages in ([], [decided(), replace(decided(), capability="other")]):
        with pytest.raises(UsageError):
            html.render(coverages)


# ---- what a tree may say ---------------------------------------------------------------------


@pytest.mark.parametrize("verdict", VERDICTS)
def test_names_of_a_hostile_tree_are_text_everywhere(verdict: VerdictName) -> None:
    page = Elements(html.render([versioned(named(HOSTILE, verdict), None, HOSTILE)]))
    assert len(page.of("script")) == 3
    assert not page.of("img")
    assert not [name for _, attrs, _ in page.found for name in attrs if name.startswith("on")]
    (row,) = [said for attrs, said in page.of("th") if attrs.get("scope") == "row"]
    assert row == literal(HOSTILE)


def test_names_of_a_hostile_tree_come_back_from_the_data() -> None:
    version = data_of(html.render([named(HOSTILE)]))["versions"][0]
    cell = version["rows"][0]["cells"][0]
    assert cell["evidence"][0]["text"] == literal(HOSTILE)
    assert cell["error"]["message"] == literal(HOSTILE)


@given(COVERAGES)
@settings(max_examples=30)
def test_every_document_gives_a_page_with_three_scripts(coverage: Coverage) -> None:
    text = html.render([coverage])
    assert len(Elements(text).of("script")) == 3
    assert not {"\x00", "\x1b", "\u202e", "\u2028"} & set(text)


def test_the_policy_lets_nothing_run_but_the_page_itself() -> None:
    page = Elements(html.render(two()))
    (policy,) = [str(attrs["content"]) for attrs, _ in page.of("meta") if "http-equiv" in attrs]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    styles = [said for _, said in page.of("style")]
    scripts = [said for attrs, said in page.of("script") if "type" not in attrs]
    assert rules["style-src"] == " ".join(map(_hash, styles))
    assert rules["script-src"] == " ".join(map(_hash, scripts))
    assert "unsafe" not in rules["script-src"]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_names_no_other_file() -> None:
    page = Elements(html.render(two()))
    links = [
        attrs[name] or "" for _, attrs, _ in page.found for name in ("src", "href") if name in attrs
    ]
    assert links
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    (style,) = [said for _, said in page.of("style")]
    assert "url(" not in style
    assert "@import" not in style


# ---- the data behind the cells ---------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("abc"), v)
)


def _literally(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _literally(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_literally(part) for part in value]
    return literal(value) if isinstance(value, str) else value


@given(VALUES)
def test_every_value_comes_back_from_the_pool(value: Any) -> None:
    pool = Pool()
    position = pool.put(value)
    document = stdlib_json.loads(pool.document())
    values: list[Any] = []
    for node in document["nodes"]:
        values.append(_value(node, values, document["shapes"]))
    back = values[position]
    assert back == _literally(value)
    assert stdlib_json.dumps(back) == stdlib_json.dumps(_literally(value))  # True is not 1


def test_equal_values_are_kept_once() -> None:
    pool = Pool()
    first = pool.put({"a": ["x", "y"]})
    size = len(pool.document())
    assert pool.put({"a": ["x", "y"]}) == first
    assert len(pool.document()) == size


def test_six_platforms_alike_cost_little_more_than_one() -> None:
    one = html.render([document(mtp("cuda"), platforms=("cuda",))])
    six = html.render([document(*(mtp(name) for name in PLATFORMS))])
    assert len(six) - len(one) < 3000


def test_a_cell_has_the_row_and_the_head_of_the_document() -> None:
    version = data_of(html.render([told()]))["versions"][0]
    (row,) = [row for row in version["rows"] if row["architecture"] == "DeepSeekMTPModel"]
    cell = row["cells"][1]
    assert cell["platform"] == "rocm"
    assert cell["class"] == "DeepSeekMTP"
    assert [step["kind"] for step in cell["evidence"]] == ["registry", "guard"]
    assert cell["head"]["logits"]["ways"][0]["hops"][0]["line"] == 77
    assert version["callers"][0]["conditions"] == ["x is set"]


def test_what_was_not_decided_is_on_the_page() -> None:
    assert "Not decided: conditions left open" in html.render([told()])
    assert "nothing was left open" in html.render([decided()])


def test_only_leaves_out_lines_and_keeps_the_numbers() -> None:
    text = html.render([decided()], only=["import"])
    assert [said for attrs, said in Elements(text).of("th") if attrs.get("scope") == "row"] == [
        "DeepseekV32MTPModel"
    ]
    assert "2<span>/3</span>" not in text
    assert text.count("<span>/3</span>") == len(PLATFORMS)


def test_each_verdict_has_a_class_and_a_sign_of_its_own() -> None:
    assert set(CLASSES) == set(VERDICTS)
    style = (html._FILES / "style.css").read_text("utf-8")
    signs = dict(re.findall(r'\.(\w+)::before \{ content: "(.)" / ""; \}', style))
    assert set(CLASSES.values()) <= set(signs)
    assert len({signs[name] for name in CLASSES.values()}) == len(CLASSES)


# ---- what changed ----------------------------------------------------------------------------


def _row(verdict: VerdictName, **more: Any) -> Row:
    return replace(mtp("cuda"), verdict=verdict, **more)


def _compared(before: Sequence[Row], after: Sequence[Row]) -> tuple[Change, ...]:
    return changes(document(*before, platforms=("cuda",)), document(*after, platforms=("cuda",)))


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("no", "yes", "gained"),
        ("no", "yes?", "gained"),
        ("import", "yes", "importable"),
        ("yes", "no", "lost"),
        ("yes?", "stub", "lost"),
        ("yes", "import", "unimportable"),
        ("yes", "absent", "unimportable"),
        ("unsafe", "no", "lost"),
        ("yes", "unsafe", "unsafe"),
        ("no", "unsafe", "unsafe"),
        ("no", "import", "unimportable"),
        ("n/a", "absent", "unimportable"),
        ("import", "no", "importable"),
        ("import", "absent", "verdict"),
        ("yes", "yes?", "verdict"),
        ("unsafe", "yes", "verdict"),
        ("no", "n/a", "verdict"),
        ("?", "yes", "decided"),
        ("yes", "?", "undecided"),
    ],
)
def test_a_change_of_verdict_has_a_kind(before: VerdictName, after: VerdictName, kind: str) -> None:
    (change,) = _compared([_row(before)], [_row(after)])
    assert (change.kind, change.before, change.after) == (kind, before, after)


def test_the_same_answer_is_no_change_wherever_its_lines_are() -> None:
    moved = replace(mtp("cuda"), evidence=())
    assert _compared([mtp("cuda")], [moved]) == ()


def test_another_class_is_a_change() -> None:
    (change,) = _compared([mtp("cuda")], [_row("no", module="vllm.models.a.mtp", class_="B")])
    assert (change.kind, change.before, change.after) == (
        "moved",
        "deepseek_mtp.DeepSeekMTP",
        "a.mtp.B",
    )


def test_another_head_path_with_the_same_verdict_is_a_change() -> None:
    def with_path(brief: str) -> Coverage:
        head = replace(told().heads[0])
        assert head.logits is not None
        logits = replace(head.logits, brief=brief, fingerprint=brief)
        return replace(told(), heads=(replace(head, logits=logits),))

    (change,) = changes(with_path("lm_head"), with_path("lm_head ∘ norm"))
    assert (change.kind, change.before, change.after) == ("head-path", "lm_head", "lm_head ∘ norm")
    assert change.platforms == PLATFORMS


def test_the_page_and_the_drift_say_the_same() -> None:
    trees = coverage(tree(PAIR)), coverage(tree(NORMED))
    told = {(c.kind, c.architecture) for c in drift(*trees).changes if c.kind in TITLES}
    assert {(change.kind, change.architecture) for change in changes(*trees)} == told
    assert ("silent", "DraftModel") in told


def test_every_kind_of_change_of_a_cell_has_a_title() -> None:
    assert set(KINDS) - set(TITLES) == {"finding", "finding-gone", "stale"}


def test_what_is_new_and_what_is_gone_is_said_with_its_verdict() -> None:
    assert _compared([], [mtp("cuda")]) == (
        Change("added-without", "DeepSeekMTPModel", ("cuda",), "", "no"),
    )
    assert _compared([mtp("cuda")], []) == (
        Change("removed", "DeepSeekMTPModel", ("cuda",), "no", ""),
    )


def test_platforms_that_one_document_lacks_are_not_compared() -> None:
    before = document(mtp("cuda"), platforms=("cuda",))
    after = document(mtp("cuda"), mtp("rocm"), platforms=("cuda", "rocm"))
    assert changes(before, after) == ()


def test_platforms_with_the_same_change_share_a_line() -> None:
    found = [(change.kind, change.after, change.platforms) for change in changes(*two())]
    assert found == [
        ("unsafe", "unsafe", ("cuda",)),
        ("gained", "yes?", ("rocm",)),
        ("added", "import", PLATFORMS[1:]),
    ]


def test_every_pair_of_versions_is_in_the_data() -> None:
    three = [versioned(decided(), version) for version in ("0.1", "0.2", "0.3")]
    pairs = [(pair["from"], pair["to"]) for pair in data_of(html.render(three))["changes"]]
    assert pairs == [(0, 1), (0, 2), (1, 2)]


# ---- the chart -------------------------------------------------------------------------------


def test_every_row_is_in_one_part_of_its_bar() -> None:
    for verdict in VERDICTS:
        coverage = document(_row(verdict), platforms=("cuda",))
        assert Counted.of(coverage, "cuda").total == 1


def test_the_bars_of_all_platforms_have_one_scale() -> None:
    drawn = charts(["0.30.0", "0.31.0"], two())
    assert [chart.platform for chart in drawn] == list(PLATFORMS)
    for chart in drawn:
        short, tall = (sum(rect.height for rect in bar.rects) for bar in chart.bars)
        assert tall == pytest.approx(chart.height)
        assert short == pytest.approx(chart.height * 2 / 3, abs=0.1)


def test_a_bar_says_its_numbers() -> None:
    (cuda, *_) = charts(["0.31.0"], [told()])
    assert cuda.bars[0].title == (
        "0.31.0: 1 have the method, 1 have it, and it is unsafe, 1 lack it"
    )


def test_the_numbers_of_the_chart_are_a_table_too() -> None:
    assert re.search(r'<th scope="row">0.31.0</th><td>1 of 3</td>', html.render(two()))
    assert "<svg viewBox" not in html.render([told()]).split("<table", 1)[0]
