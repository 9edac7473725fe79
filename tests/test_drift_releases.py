"""Real releases against each other: the true changes and only those.

What is expected was read in the trees of the releases: the registry's lines, the dispatch files,
and every ``compute_logits`` and ``get_top_tokens`` whose text differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from trees.minivllm import PLATFORMS

from auditor.api import Request, audit
from auditor.baseline import Baseline, parse, render
from auditor.changes import Change, Drift
from auditor.coverage import Coverage
from auditor.drift import drift, drift_since
from auditor.reports.drift import csv, json, markdown, table
from auditor.snapshot import snapshot
from auditor.sources.tree import Source

pytestmark = [pytest.mark.network, pytest.mark.slow]

Release = Callable[[str], Source]
Told = set[tuple[str, str, frozenset[str]]]
ALL = frozenset(PLATFORMS)
ROCM = frozenset({"rocm"})

#: Kind, architecture and platforms of each change.
EXPECTED: dict[tuple[str, str], Told] = {
    ("0.28.0", "0.29.0"): {
        ("added", "DeepseekV32MTPModel", frozenset({"cuda"})),
        ("added-without", "DeepseekV32MTPModel", ALL - {"cuda"}),
        ("finding", "ExtractHiddenStatesModel", ALL),
        ("silent", "Gemma4MTPModel", ALL),
        ("finding", "Gemma4MTPModel", ALL),
        ("added-without", "HYV4MTPModel", ALL - {"rocm", "xpu"}),
        ("added", "HYV4MTPModel", frozenset({"rocm", "xpu"})),
        ("added", "Qwen3OmniDSparkModel", ALL),
        ("added-without", "Qwen4ExpMTP", ALL - {"xpu", "tpu"}),
        ("added", "Qwen4ExpMTP", frozenset({"xpu", "tpu"})),
    },
    ("0.30.0", "0.31.0"): {
        ("gained", "DeepSeekV4MTPModel", ROCM),
        ("finding", "DeepSeekV4MTPModel", ROCM),
        ("moved", "DeepseekV32MTPModel", ROCM),
        ("head-path", "DeepseekV32MTPModel", ROCM),
        ("moved", "Glm5NextMTPModel", ALL - {"xpu"}),
        ("added", "LiLiCorrDraftModel", ALL),
    },
    ("0.32.0", "0.33.0"): {
        ("added-without", "DFlash2BeamDraftModel", ALL),
        ("added", "DFlashQwen3XPressModel", ALL),
        ("head-path", "DSparkV41DraftModel", ROCM),
        ("removed", "MedusaModel", ALL),
        ("added", "MuseSparkDSparkModel", ALL),
        ("added-without", "ParseAuxMTPModel", ALL),
        ("added", "Qwen3XPressModel", ALL),
        ("added", "Step5MTP", ALL),
    },
}


@cache
def _audited(release: Release, version: str) -> Coverage:
    return audit(release(version), Request())


def _told(document: Drift) -> Told:
    found: dict[tuple[str, str], set[str]] = {}
    for change in document.changes:
        found.setdefault((change.kind, change.architecture), set()).add(change.platform)
    return {(*key, frozenset(platforms)) for key, platforms in found.items()}


def _one(document: Drift, kind: str, architecture: str) -> Change:
    return next(
        change
        for change in document.changes
        if (change.kind, change.architecture) == (kind, architecture)
    )


@pytest.mark.parametrize(("before", "after"), EXPECTED)
def test_the_true_changes_and_only_those(before: str, after: str, release: Release) -> None:
    document = drift(_audited(release, before), _audited(release, after))
    assert _told(document) == EXPECTED[before, after]
    failing = {"added-without", "silent"}
    assert all(change.failing == (change.kind in failing) for change in document.changes)
    assert document.undecided == ()


@pytest.mark.parametrize(("before", "after"), EXPECTED)
def test_a_baseline_tells_the_same_as_the_release(
    before: str, after: str, release: Release
) -> None:
    """What is kept in the file is all that the comparison needs.

    But for one thing: of several findings of one code it holds the number, so that it cannot tell
    which of them is the new one.
    """
    text = render(Baseline(snapshot(_audited(release, before))))
    kept = parse(text.encode(), "base.toml").snapshot
    now = _audited(release, after)
    by_file, by_source = drift_since(kept, now), drift(_audited(release, before), now)
    fields = ("kind", "architecture", "platform", "before", "after", "failing")

    def said(document: Drift) -> list[tuple[object, ...]]:
        return [
            (
                *(getattr(change, name) for name in fields),
                change.message.partition(":")[0] if change.kind == "finding" else change.message,
            )
            for change in document.changes
        ]

    assert said(by_file) == said(by_source)


@pytest.mark.parametrize("version", sorted({one for pair in EXPECTED for one in pair}))
def test_a_release_has_not_changed_since_itself(version: str, release: Release) -> None:
    now = _audited(release, version)
    kept = parse(render(Baseline(snapshot(now))).encode(), "base.toml").snapshot
    assert drift_since(kept, now).changes == ()


def test_where_to_look(release: Release) -> None:
    document = drift(_audited(release, "0.30.0"), _audited(release, "0.31.0"))
    tree = release("0.31.0").tree

    def text(kind: str, architecture: str) -> tuple[str, str]:
        change = _one(document, kind, architecture)
        lines = tree.read(change.path).decode().splitlines()
        return change.path, lines[change.line - 1].strip()

    assert text("gained", "DeepSeekV4MTPModel") == (
        "vllm/models/deepseek_v4/amd/mtp.py", "def get_top_tokens(",
    )  # fmt: skip
    path, line = text("moved", "DeepseekV32MTPModel")
    assert path == "vllm/models/deepseek_v32/amd/mtp.py"
    assert line.startswith("class DeepseekV32MTP(")
    path, line = text("moved", "Glm5NextMTPModel")
    assert path == "vllm/models/glm5next/common/mtp.py"
    assert line.startswith("class Glm5NextMTP(")
    path, line = text("added", "LiLiCorrDraftModel")
    assert path == "vllm/model_executor/models/registry.py"
    assert '"LiLiCorrDraftModel"' in line


@pytest.mark.parametrize(("before", "after"), EXPECTED)
def test_every_format_tells_every_change(before: str, after: str, release: Release) -> None:
    document = drift(_audited(release, before), _audited(release, after))
    texts = [
        table.render(document, width=120),
        json.render(document),
        markdown.render(document),
        csv.render(document),
    ]
    for text in texts:
        for kind, architecture, _ in EXPECTED[before, after]:
            assert architecture in text
            assert kind in text
