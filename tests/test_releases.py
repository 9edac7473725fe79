"""Every release from 0.16.0 to the newest runs, decides its rows, and says what it lacks.

A few of them by default; ``DRAFTAUDIT_ALL_RELEASES=1`` takes every release that the index lists.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import pytest
from packaging.version import Version
from record_builds import OLDEST, releases
from trees.minivllm import PLATFORMS, SPECULATIVE, coverage

from auditor.api import Request, audit
from auditor.coverage import Coverage
from auditor.ruleset.builds import builds
from auditor.sources.open import open_source
from auditor.sources.tree import Source

Release = Callable[[str], Source]

#: The oldest, the first with the flag, some between, and the newest of the index.
SAMPLE = ("0.16.0", "0.17.0", "0.20.0", "0.24.0", "0.27.1", "latest")
EVERY = os.environ.get("DRAFTAUDIT_ALL_RELEASES", "") not in ("", "0")
FIRST_WITH_FLAG = Version("0.17.0")
FLAG = "use_local_argmax_reduction"


@cache
def _listed() -> tuple[str, ...]:
    return tuple(releases())


def _asked() -> tuple[str, ...]:
    return _listed() if EVERY else SAMPLE


@cache
def _audited(release: Release, version: str) -> Coverage:
    return audit(release(_listed()[-1] if version == "latest" else version), Request())


@pytest.fixture(params=SAMPLE)
def document(request: pytest.FixtureRequest, release: Release) -> Coverage:
    return _audited(release, request.param)


def _check(document: Coverage) -> None:
    """What holds for each release."""
    version = Version(document.source.version or "0")
    assert document.source.label == f"vllm {document.source.version}"
    architectures = {row.architecture for row in document.rows}
    assert len(document.rows) == len(architectures) * len(PLATFORMS)
    assert len(architectures) >= 20
    assert {row.platform for row in document.rows} == set(PLATFORMS)
    for row in document.rows:
        assert row.verdict != "?" or row.reason, row
        assert (row.error is None) or row.error.message, row
        assert row.evidence[0].kind == "registry", row
    assert [item for item in document.undecided if item.kind in ("file", "table", "source")] == []
    assert all(item.reason for item in document.undecided)
    notes = [note for note in document.notes if FLAG in note]
    assert bool(notes) is (version < FIRST_WITH_FLAG)


@pytest.mark.network
@pytest.mark.slow
def test_a_sample_of_the_releases_runs(document: Coverage) -> None:
    _check(document)


@pytest.mark.network
@pytest.mark.slow
def test_classes_load_on_every_platform_of_every_sample(document: Coverage) -> None:
    """A platform on which next to nothing loads would be a fact that is wrong."""
    for name in PLATFORMS:
        rows = [row for row in document.rows if row.platform == name]
        loaded = [row for row in rows if row.hasattr is not None]
        assert len(loaded) >= 0.9 * len(rows), name


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(not EVERY, reason="takes minutes; DRAFTAUDIT_ALL_RELEASES=1 asks for it")
def test_every_release_of_the_index_runs(release: Release) -> None:
    for version in _asked():
        _check(_audited(release, version))


@pytest.mark.network
@pytest.mark.slow
def test_a_release_without_the_flag_says_so(release: Release) -> None:
    (note,) = _audited(release, "0.16.0").notes
    assert note == (
        f"vllm 0.16.0 has no {FLAG}: the setting came with a later release, "
        "so nothing there asks for get_top_tokens."
    )
    assert _audited(release, "0.17.0").notes == ()


@pytest.mark.network
@pytest.mark.slow
def test_the_index_lists_the_releases_that_are_recorded() -> None:
    lines = [line for group in builds().requirements for line in group.lines]
    lines += [line for group in builds().extensions for line in group.lines]
    recorded = {
        Version(bound) for line in lines for bound in (line.since, line.until) if bound
    }  # fmt: skip
    assert Version(_listed()[0]) == OLDEST
    assert recorded <= set(map(Version, _listed()))


@pytest.mark.network
@pytest.mark.slow
def test_latest_is_the_newest_that_the_index_lists(
    release: Release, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = open_source("latest", cwd=tmp_path_factory.mktemp("cwd"))
    assert source.version == _listed()[-1]


# ---- the flag, in a mini tree -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (f"class SpeculativeConfig:\n    {FLAG}: bool = False\n", False),
        (f"class SpeculativeConfig:\n    {FLAG} = Field(default=False)\n", False),
        (f"class Other:\n    {FLAG}: bool = False\n\nclass SpeculativeConfig:\n    pass\n", True),
        (f"class SpeculativeConfig:\n    pass\n\n{FLAG} = False\n", True),
        ("", True),
    ],
    ids=["annotated", "assigned", "in another class", "of the module", "nowhere"],
)
def test_the_note_about_the_flag(config: str, says: bool) -> None:
    notes = coverage({SPECULATIVE: config}).notes
    assert bool(notes) is says
