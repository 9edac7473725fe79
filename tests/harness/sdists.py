"""Files of a release's sdist that are not part of a tree: vLLM's own tests, read in memory."""

from __future__ import annotations

import tarfile
from collections.abc import Callable

from packaging.version import Version

from auditor.sources.download import Download, temporary_file
from auditor.sources.index import find_releases
from auditor.sources.network import open_session
from auditor.sources.pip_settings import read_pip_settings
from auditor.sources.releases import choose


def own_tests(version: str, wanted: Callable[[bytes], bool]) -> dict[str, bytes]:
    """The files below ``tests/v1/`` whose contents are wanted, by path; needs the network."""
    settings = read_pip_settings()
    found: dict[str, bytes] = {}
    with open_session(settings) as session, temporary_file() as file:
        release = choose(find_releases(session, settings), Version(version))
        Download(session, settings, None).fetch(release, file)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            for member in archive:
                _, _, path = member.name.partition("/")
                if not (path.startswith("tests/v1/") and path.endswith(".py") and member.isfile()):
                    continue
                contents = archive.extractfile(member)
                assert contents is not None
                text = contents.read()
                if wanted(text):
                    found[path] = text
    return found
