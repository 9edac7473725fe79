"""The page in a real Chromium: read by mouse, by keyboard, without a script, and on paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage
from auditor.reports import html
from auditor.sources.cache import CacheConfig
from auditor.sources.tree import Source

from .browser import CONTRASTS, Reader, chromium
from .page import told, two, versioned
from .samples import PLATFORMS, decided, document, mtp, named

pytestmark = [pytest.mark.slow, pytest.mark.browser]

RELEASES = ("0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0")
MTP_ON_ROCM = "#v=0.31.0&a=DeepSeekMTPModel&p=rocm"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def reader(browser: Browser, tmp_path: Path) -> Iterator[Reader]:
    made = Reader(browser, tmp_path)
    yield made
    made.check()
    for context in browser.contexts:
        context.close()


def lines(page: Page) -> list[str]:
    """The architectures that are shown."""
    shown = page.locator("section.version.current tbody tr:visible th").all_inner_texts()
    return [text.strip() for text in shown]


def cell(page: Page, architecture: str, platform: str) -> str:
    return f'td button[aria-label^="{architecture} on {platform}:"]:visible'


def panel(page: Page) -> str:
    return page.locator("#details").inner_text()


# ---- filters ---------------------------------------------------------------------------------


def test_the_search_looks_at_names_classes_and_errors(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    assert len(lines(page)) == 3
    for words, found in (
        ("eagle", ["EagleLlamaForCausalLM"]),
        ("deep_gemm", ["DeepseekV32MTPModel"]),
        ("deepseek_mtp.DeepSeekMTP", ["DeepSeekMTPModel"]),
        ("DEEPSEEK v32", ["DeepseekV32MTPModel"]),
        ("nothing like it", []),
    ):
        page.get_by_label("Search").fill(words)
        assert lines(page) == found
    assert page.locator(".none:visible").inner_text() == "No architecture fits these filters."
    expect(page.get_by_role("status")).to_have_text("0 of 3 architectures")
    page.get_by_role("button", name="Show all").click()
    assert len(lines(page)) == 3
    assert page.evaluate("document.activeElement.id") == "search"


def test_verdicts_are_looked_for_on_the_platforms_that_are_shown(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.get_by_role("checkbox", name="import").check()
    assert lines(page) == ["DeepseekV32MTPModel"]
    page.get_by_role("checkbox", name="cuda").check()
    assert lines(page) == []
    assert page.locator("section.version.current td.match").count() == 5
    page.get_by_role("checkbox", name="unsafe").check()
    assert lines(page) == ["DeepseekV32MTPModel"]
    heads = page.locator("section.version.current thead .p:visible .name").all_inner_texts()
    assert heads == ["cuda"]
    expect(page.get_by_role("status")).to_have_text("1 of 3 architectures, 1 of 6 platforms")


def test_lines_whose_platforms_differ_can_be_shown_alone(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.get_by_role("checkbox", name="platforms differ").check()
    assert lines(page) == ["DeepseekV32MTPModel"]


def test_filters_stand_in_the_address_and_are_read_from_it(reader: Reader) -> None:
    page = reader.open(html.render(two()), "#v=0.30.0&q=eagle&on=rocm,xpu&is=no")
    assert lines(page) == ["EagleLlamaForCausalLM"]
    expect(page.get_by_label("Search")).to_have_value("eagle")
    page.get_by_role("checkbox", name="xpu").uncheck()
    assert page.evaluate("location.hash") == "#v=0.30.0&q=eagle&is=no&on=rocm"


# ---- the details of a cell -------------------------------------------------------------------


def test_a_click_opens_the_evidence_and_the_head_path(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.locator(cell(page, "DeepSeekMTPModel", "rocm")).click()
    dialog = page.get_by_role("dialog", name="DeepSeekMTPModel on rocm")
    expect(dialog).to_be_visible()
    said = panel(page)
    for part in (
        "lacks the method",
        "hasattr: false",
        "vllm/model_executor/models/registry.py:501",
        "does not have get_top_tokens",
        "SD201 error",
        "shared_head ∘ norm",
        "Add a forwarding pair",
        "both have the same size",
        "EagleProposer",
        "X is not known",
    ):
        assert part in said, part
    page.get_by_text("1 way to the head").click()
    assert "return self.model.compute_logits(hidden_states)" in panel(page)


def test_an_import_that_fails_is_told_with_its_chain(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.locator(cell(page, "DeepseekV32MTPModel", "xpu")).click()
    said = panel(page)
    assert "No module named 'deep_gemm'" in said
    assert said.index("__init__.py:12") < said.index("mtp.py:20")


def test_escape_closes_and_gives_the_focus_back(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    button = page.locator(cell(page, "DeepSeekMTPModel", "rocm"))
    button.click()
    assert page.evaluate("document.activeElement.id") == "details-title"
    page.keyboard.press("Escape")
    expect(page.locator("#details")).to_be_hidden()
    expect(button).to_be_focused()
    assert "a=" not in page.evaluate("location.hash")


def test_the_details_lead_to_other_platforms_and_versions(reader: Reader) -> None:
    page = reader.open(html.render(two()), "#v=0.31.0&a=EagleLlamaForCausalLM&p=rocm")
    page.get_by_role("navigation", name="Versions").get_by_role("link", name="0.30.0 no").click()
    assert "vllm 0.30.0" in panel(page)
    page.get_by_role("navigation", name="Platforms").get_by_role("link", name="xpu").click()
    expect(page.get_by_role("dialog", name="EagleLlamaForCausalLM on xpu")).to_be_visible()
    assert "v=0.30.0&a=EagleLlamaForCausalLM&p=xpu" in page.evaluate("location.hash")


def test_an_address_opens_a_cell_and_the_way_back_closes_it(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.locator(cell(page, "DeepSeekMTPModel", "rocm")).click()
    address = page.evaluate("location.hash")
    page.go_back()
    expect(page.locator("#details")).to_be_hidden()
    again = reader.open(html.render(two()), address)
    expect(again.get_by_role("dialog", name="DeepSeekMTPModel on rocm")).to_be_visible()
    again.get_by_role("navigation", name="Platforms").get_by_role("link", name="xpu").click()
    again.get_by_role("button", name="Close the details").click()
    expect(again.locator(cell(again, "DeepSeekMTPModel", "xpu"))).to_be_focused()


@pytest.mark.parametrize(
    "address", ["#v=9.9&a=x&p=y", "#source-77", "#%", "#a=DeepSeekMTPModel", "#vs=0.31.0&is=never"]
)
def test_an_address_that_means_nothing_shows_the_newest_version(
    reader: Reader, address: str
) -> None:
    page = reader.open(html.render(two()), address)
    assert len(lines(page)) == 3
    expect(page.locator("#details")).to_be_hidden()


def test_on_a_narrow_screen_the_details_are_modal(reader: Reader) -> None:
    page = reader.open(html.render(two()), viewport={"width": 390, "height": 844})
    button = page.locator(cell(page, "DeepSeekMTPModel", "cuda"))
    button.click()
    assert page.locator("#details").evaluate("dialog => dialog.matches(':modal')")
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


# ---- the keyboard ----------------------------------------------------------------------------


def focused(page: Page) -> str:
    label: str | None = page.evaluate("document.activeElement.getAttribute('aria-label')")
    return (label or "").partition(":")[0]


def test_the_keyboard_reaches_everything(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the matrix")).to_be_focused()
    page.keyboard.press("Enter")
    assert focused(page) == "DeepSeekMTPModel on cuda"
    for key, there in (
        ("ArrowRight", "DeepSeekMTPModel on rocm"),
        ("ArrowDown", "DeepseekV32MTPModel on rocm"),
        ("End", "DeepseekV32MTPModel on oot"),
        ("ArrowRight", "DeepseekV32MTPModel on oot"),
        ("Home", "DeepseekV32MTPModel on cuda"),
        ("PageDown", "EagleLlamaForCausalLM on cuda"),
        ("Control+Home", "DeepSeekMTPModel on cuda"),
        ("Control+End", "EagleLlamaForCausalLM on oot"),
        ("ArrowUp", "DeepseekV32MTPModel on oot"),
        ("ArrowLeft", "DeepseekV32MTPModel on tpu"),
    ):
        page.keyboard.press(key)
        assert focused(page) == there, key
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="DeepseekV32MTPModel on tpu")).to_be_visible()
    page.keyboard.press("Escape")
    assert focused(page) == "DeepseekV32MTPModel on tpu"
    assert page.locator("section.version.current td button[tabindex='0']").count() == 1


def test_the_arrows_skip_what_a_filter_hides(reader: Reader) -> None:
    page = reader.open(html.render(two()), "#on=cuda,oot&q=MTPModel")
    page.locator("section.version.current td button[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert focused(page) == "DeepSeekMTPModel on oot"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert focused(page) == "DeepseekV32MTPModel on oot"


def test_the_focus_can_be_seen(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    for box in page.locator(".chip input").all():
        box.focus()
        page.keyboard.press("Shift")
        beside = box.evaluate("box => getComputedStyle(box.nextElementSibling).outlineStyle")
        assert beside == "solid" or not box.is_visible()


# ---- versions --------------------------------------------------------------------------------


def test_another_version_has_its_own_matrix(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.get_by_role("link", name=re.compile("^0.30.0")).click()
    assert lines(page) == ["DeepSeekMTPModel", "EagleLlamaForCausalLM"]
    expect(page.locator(cell(page, "EagleLlamaForCausalLM", "rocm"))).to_have_text("no")
    assert page.evaluate("location.hash") == "#v=0.30.0"
    expect(page.locator(".chart g.current")).to_have_count(len(PLATFORMS))


def test_two_versions_are_compared(reader: Reader) -> None:
    page = reader.open(html.render(two()))
    page.get_by_label("Compare with").select_option("0.30.0")
    told_of = page.get_by_role("region", name="From 0.30.0 to 0.31.0")
    assert "Gained the method" in told_of.inner_text()
    assert "New architectures" in told_of.inner_text()
    gained = page.locator(cell(page, "EagleLlamaForCausalLM", "rocm"))
    expect(gained).to_have_attribute("aria-label", "EagleLlamaForCausalLM on rocm: yes?, was no")
    assert gained.inner_text().split() == ["no", "→", "yes?"]
    page.get_by_role("checkbox", name="changed cells").check()
    assert lines(page) == ["DeepseekV32MTPModel", "EagleLlamaForCausalLM"]
    told_of.get_by_role("link", name="EagleLlamaForCausalLM").click()
    expect(page.get_by_role("dialog", name="EagleLlamaForCausalLM on rocm")).to_be_visible()
    page.get_by_label("Compare with").select_option("")
    expect(told_of).to_be_hidden()
    assert len(lines(page)) == 3


def test_the_oldest_version_has_nothing_to_compare_with(reader: Reader) -> None:
    page = reader.open(html.render(two()), "#v=0.30.0&vs=0.31.0")
    expect(page.get_by_label("Compare with")).to_be_disabled()
    expect(page.locator("#compared")).to_be_hidden()


def test_one_version_needs_neither_chart_nor_column(reader: Reader) -> None:
    page = reader.open(html.render([told()]))
    assert page.locator(".chart, .versions, #base").count() == 0
    page.locator(cell(page, "DeepSeekMTPModel", "cuda")).click()
    assert "lacks the method" in panel(page)


# ---- other ways to read ----------------------------------------------------------------------


def test_without_a_script_every_version_is_a_plain_table(reader: Reader) -> None:
    page = reader.open(html.render(two()), java_script_enabled=False)
    assert page.locator("table.matrix:visible").count() == 2
    assert page.locator(".tools:visible, td button:visible, dialog:visible").count() == 0
    row = page.locator("#source-1 tr", has=page.get_by_role("rowheader", name="DeepSeekMTPModel"))
    assert row.locator("td.c").all_inner_texts() == ["no"] * 6
    assert "Gained the method" in page.locator("#source-1").inner_text()
    page.get_by_role("link", name=re.compile("^0.30.0")).click()
    assert page.evaluate("location.hash") == "#source-0"


def test_the_page_prints_the_version_that_is_chosen(reader: Reader) -> None:
    page = reader.open(html.render(two()), MTP_ON_ROCM, color_scheme="dark")
    assert page.pdf(format="A4").startswith(b"%PDF-")
    page.emulate_media(media="print")
    assert page.locator("table.matrix:visible").count() == 1
    assert page.locator(".tools:visible, .versions:visible, .close:visible").count() == 0
    expect(page.get_by_role("dialog", name="DeepSeekMTPModel on rocm")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == (
        "rgb(255, 255, 255)"
    )


def _everything() -> str:
    """A page with every verdict, in a table, among the changes and in the panel."""
    verdicts = ("yes", "yes?", "unsafe", "no", "stub", "import", "absent", "n/a", "?")
    rows = [
        replace(mtp("rocm"), architecture=f"A{index}", verdict=verdict)
        for index, verdict in enumerate(verdicts)
    ]
    shifted = [
        replace(row, verdict=verdicts[(index + 1) % len(verdicts)])
        for index, row in enumerate(rows)
    ]
    before = versioned(document(*shifted, platforms=("rocm",)), "0.30.0")
    after = versioned(document(*rows, platforms=("rocm",)), "0.31.0")
    named_a2 = {"architectures": ("A2",)}
    finding, item = told().findings[0], told().undecided[0]
    after = replace(
        after,
        notes=("a note",),
        findings=(replace(finding, **named_a2), replace(finding, severity="note", **named_a2)),
        undecided=(replace(item, **named_a2),),
    )
    return html.render([before, after])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["#vs=0.30.0", "#vs=0.30.0&a=A2&p=rocm&is=unsafe"])
def test_every_text_stands_out_from_its_ground(reader: Reader, scheme: str, address: str) -> None:
    page = reader.open(_everything(), f"{address}&v=0.31.0", color_scheme=scheme)
    for details in page.locator("details:visible").all():
        details.evaluate("element => { element.open = true; }")
    found: dict[str, float] = page.evaluate(CONTRASTS)
    assert len(found) > 20
    assert {key: round(ratio, 2) for key, ratio in found.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600])
@pytest.mark.parametrize("address", ["#vs=0.30.0", MTP_ON_ROCM])
def test_axe_finds_nothing(reader: Reader, scheme: str, width: int, address: str) -> None:
    size = {"width": width, "height": 900}
    # axe is a script from outside, which the page's own policy would not let in.
    page = reader.open(
        html.render(two()), address, color_scheme=scheme, viewport=size, bypass_csp=True
    )
    found = Axe().run(page)
    assert [
        (rule["id"], [node["html"][:120] for node in rule["nodes"]])
        for rule in found.response["violations"]
    ] == []


def test_a_hostile_tree_stays_text(reader: Reader) -> None:
    name = "</script><img src=x onerror=alert(1)>__proto__\"'"
    page = reader.open(html.render([named(name)]))
    assert lines(page) == [name]
    page.locator("td button").first.click()
    assert name in panel(page)
    assert page.locator("img").count() == 0
    for odd in ("__proto__", "constructor", "toString"):
        page = reader.open(html.render([named(odd)]))
        page.locator("td button").first.click()
        assert odd in panel(page)


def test_the_policy_stops_a_script_that_is_not_the_pages_own(reader: Reader) -> None:
    page = reader.open(html.render(two()).replace("</body>", "<script>window.x=1</script></body>"))
    assert page.evaluate("window.x") is None
    assert any("Content Security Policy" in text for text in reader.complaints)
    reader.complaints.clear()


def test_a_page_without_any_row_says_so(reader: Reader) -> None:
    page = reader.open(html.render([document(), versioned(decided(), "0.31.0")]), "#v=0.30.0")
    assert "No architecture to show." in page.locator("section.version.current").inner_text()


# ---- real releases ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def releases(release: Callable[[str], Source]) -> list[Coverage]:
    resources = Resources(CacheConfig.default().folder)
    return [audit(release(version), Request(), resources) for version in RELEASES]


@pytest.mark.network
def test_seven_real_releases_are_one_small_page(releases: list[Coverage], reader: Reader) -> None:
    text = html.render(releases)
    assert text == html.render(releases)
    assert len(text.encode()) < 3_000_000
    page = reader.open(text)
    for coverage in releases[::-1]:
        name = str(coverage.source.version)
        page.get_by_role("link", name=re.compile(f"^{re.escape(name)}")).click()
        assert len(lines(page)) == len({row.architecture for row in coverage.rows})
    page.get_by_role("link", name=re.compile("^0.33.0")).click()
    page.get_by_label("Compare with").select_option("0.32.0")
    assert "DFlash2BeamDraftModel" in page.locator("#compared").inner_text()


@pytest.mark.network
def test_every_cell_of_a_real_release_opens(releases: list[Coverage], reader: Reader) -> None:
    page = reader.open(html.render(releases[-1:]))
    page.locator("td button").first.click()
    said: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("td button")].map((button) => {
            button.click();
            return document.querySelector("#details").textContent;
        })"""
    )
    rows = releases[-1].rows
    assert len(said) == len(rows)
    for row, text in zip(rows, said, strict=True):
        assert row.architecture in text
        assert "[object" not in text
        assert "undefined" not in text
        for step in row.evidence[:1]:
            assert f"{step.path}:{step.line}" in text
