"""Writes ``rules/builds.toml``: what each release's requirement files and ``setup.py`` say.

Run it after a release: ``python tests/record_builds.py``, with the package index at hand. A wheel
and an installed package hold neither file, and answer with this record. ``test_same_answers.py``
proves that a release then answers as its sdist does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from auditor.environment import Environment
from auditor.job import conventions
from auditor.program import Files
from auditor.ruleset.distributions import distributions, vendored
from auditor.ruleset.files import rules_folder
from auditor.ruleset.platforms import PlatformRule, platforms
from auditor.sources.index import find_releases
from auditor.sources.network import open_session
from auditor.sources.open import open_source
from auditor.sources.pip_settings import read_pip_settings

OLDEST = Version("0.16.0")
HEAD = """\
# What the requirement files and setup.py of each release say, for trees that hold neither: wheels
# and installed packages. Written by tests/record_builds.py. A line counts from release `since` on
# (all of them without it), up to and without release `until`.
"""

Record = dict[str, tuple[str, ...]]


def releases() -> list[str]:
    """Every release on the index that has an sdist, oldest first; no pre-releases."""
    settings = read_pip_settings()
    with open_session(settings) as session:
        found = find_releases(session, settings).releases
    kept = {release.version for release in found if not release.is_wheel}
    return [str(version) for version in sorted(kept) if _counts(version)]


def _counts(version: Version) -> bool:
    return version >= OLDEST and not version.is_prerelease


def recorded(version: str) -> tuple[Record, Record]:
    """The lines of each requirement file, and the extensions built for each platform."""
    source = open_source(version, cwd=Path.cwd())
    paths = source.tree.files()
    environment = Environment(
        Files(source.tree), paths, conventions(), distributions(), vendored(), version
    )
    lines: Record = {}
    for rule in platforms():
        for path in rule.requirements:
            _follow(environment, path, lines)
    return lines, {rule.name: _extensions(environment, rule) for rule in platforms()}


def _follow(environment: Environment, path: str, lines: Record) -> None:
    if path in lines:
        return
    lines[path] = tuple(environment.lines(path))
    for included in environment.includes(path, lines[path]):
        _follow(environment, included, lines)


def _extensions(environment: Environment, rule: PlatformRule) -> tuple[str, ...]:
    return tuple(sorted(environment.built(rule)))


def rows(names: Sequence[str], records: Sequence[Record], key: str) -> Iterator[str]:
    """The lines under one key over all releases, each with the releases that have it."""
    everything = sorted({line for record in records for line in record.get(key, ())})
    for line in everything:
        for since, until in _spans([line in record.get(key, ()) for record in records]):
            bounds = {
                "since": names[since] if since else "",
                "until": names[until] if until < len(names) else "",
            }
            given = "".join(f", {k} = {json.dumps(v)}" for k, v in bounds.items() if v)
            yield f"    {{ text = {json.dumps(line)}{given} }},\n"


def _spans(present: Sequence[bool]) -> Iterator[tuple[int, int]]:
    start: int | None = None
    for index, here in enumerate([*present, False]):
        if here and start is None:
            start = index
        elif not here and start is not None:
            yield start, index
            start = None


def section(
    kind: str, label: str, keys: Iterable[str], names: Sequence[str], records: Sequence[Record]
) -> Iterator[str]:
    """The TOML tables of one kind."""
    for key in keys:
        lines = "".join(rows(names, records, key))
        if lines:
            yield f"\n[[{kind}]]\n{label} = {json.dumps(key)}\nlines = [\n{lines}]\n"


def text(found: Mapping[str, tuple[Record, Record]]) -> str:
    """The file for releases, given in order."""
    names = list(found)
    files, extensions = ([pair[i] for pair in found.values()] for i in (0, 1))
    paths = sorted({path for record in files for path in record})
    targets = [rule.name for rule in platforms()]
    return HEAD + "".join(
        (
            *section("requirements", "file", paths, names, files),
            *section("extensions", "platform", targets, names, extensions),
        )
    )


if __name__ == "__main__":
    (rules_folder() / "builds.toml").write_text(text({v: recorded(v) for v in releases()}))
