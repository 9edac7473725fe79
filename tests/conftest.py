"""Fixtures shared by all tests: real releases from the package index, opened once a session."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from auditor import job
from auditor.answers import Asked, Resolved, resolve
from auditor.platforms import Platform
from auditor.registry import Table
from auditor.sources.cache import CacheConfig
from auditor.sources.open import open_source
from auditor.sources.tree import Source

# The same examples in every run, so that a failure is the change's and not the day's; with
# DRAFTAUDIT_TEST_RANDOM set, other ones each time.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("random" if os.environ.get("DRAFTAUDIT_TEST_RANDOM") else "fixed")


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs the tests may say how wide its terminal is; what is printed here has none."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The platforms that are really asked, in this process, and not answered from the cache."""
    asked: list[str] = []

    def counted(question: Asked, platform: Platform, table: Table) -> Resolved:
        asked.append(platform.name)
        return resolve(question, platform, table)

    monkeypatch.setattr(job, "resolve", counted)
    return asked


@cache
def _open_release(version: str) -> Source:
    folder = os.environ.get("DRAFTAUDIT_TEST_CACHE")
    cache_config = CacheConfig.at(Path(folder)) if folder else CacheConfig.default()
    return open_source(version, cwd=Path.cwd(), cache=cache_config)


@pytest.fixture(scope="session")
def release() -> Callable[[str], Source]:
    """Open a release of the package index by version; mark the test with ``network``."""
    return _open_release
