"""A real sdist, fetched once a session by the code under test."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from auditor.sources.download import Download
from auditor.sources.index import find_releases
from auditor.sources.network import open_session
from auditor.sources.pip_settings import read_pip_settings
from auditor.sources.releases import choose

REAL_VERSION = "0.32.0"


@pytest.fixture(scope="session")
def real_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of one release, as it is on the package index; mark the test with ``network``."""
    settings = read_pip_settings()
    with open_session(settings) as session:
        release = choose(find_releases(session, settings), Version(REAL_VERSION))
        if release.path is not None:
            return release.path
        path = tmp_path_factory.mktemp("sdist") / release.filename
        with open(path, "w+b") as file:
            Download(session, settings, None).fetch(release, file)
    return path
