"""``audit --live``: the files and the running vLLM are asked the same, and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from fnmatch import fnmatchcase

from msgspec.structs import replace

from auditor.answers import Study
from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage
from auditor.errors import UsageError
from auditor.factcache import FactCache
from auditor.job import Job
from auditor.live.asking import Interpreter, Sweep, modules, sweep
from auditor.live.comparison import compared, differences, said_by
from auditor.live.document import SCHEMA_VERSION, FailingModule, LiveDocument, Modules
from auditor.program import Files
from auditor.reports.names import hint
from auditor.ruleset.capabilities import Capability, capability
from auditor.ruleset.platforms import platforms
from auditor.ruleset.target import target
from auditor.sources.tree import Source

Said = Callable[[str], None]


def audit_live(
    source: Source, asked: Interpreter, request: Request, resources: Resources, tell: Said
) -> LiveDocument:
    """Both answers for every entry.

    Args:
        source: the files of the vLLM that the interpreter has.
        asked: the interpreter.
        request: the architectures; a platform only if it is the one that it runs on.
        resources: as for an audit.
        tell: told what is being done.

    Raises:
        LiveError: the interpreter cannot be asked.
        DraftauditError: as :func:`auditor.api.audit`.
    """
    rule = capability(request.capability)
    _must_be_asked_of_classes(rule, request)
    tell(f"importing every draft model of {source.label} with {asked.name}")
    live = sweep(asked, target(), rule, platforms(), request.architectures)
    _must_run_on(live.platform, request.platforms)
    _must_match(live.entries, request.architectures, source)
    failing = {name: (error.type, error.message) for name, error in live.failing.items()}
    request = replace(request, platforms=(live.platform,), failing_modules=failing)
    tell(f"reading {source.label} on {live.platform}, with what {asked.name} has beside it")
    known = _modules(source, request, resources, asked, live)
    coverage = audit(source, _informed(request, known), resources)
    return _document(coverage, asked, live, known, rule)


def _must_be_asked_of_classes(rule: Capability, request: Request) -> None:
    """What is asked of classes alone, from one table, is what an interpreter can be asked."""
    if rule.part is not None:
        raise UsageError(
            f"{rule.name} is asked of `{rule.part}` of a model that was built, and --live builds "
            "none",
            where="--capability",
        )
    for where, given in (("--registry", request.registry), ("--override", request.overrides)):
        if given:
            raise UsageError("cannot be combined with --live", where=where)


def _must_run_on(platform: str, given: tuple[str, ...]) -> None:
    other = [name for name in given if name != platform]
    if other:
        raise UsageError(
            f"the interpreter runs on {platform}, so it cannot be asked about {', '.join(other)}",
            where="--platform",
            next_step="Leave --platform out, or leave --live out.",
        )


def _must_match(known: tuple[str, ...], globs: tuple[str, ...], source: Source) -> None:
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in known):
            what = f"no architecture of {source.label} is called {glob!r}"
            raise UsageError(what, next_step=hint(glob, sorted(known)))


def _modules(
    source: Source, request: Request, resources: Resources, asked: Interpreter, live: Sweep
) -> dict[str, bool]:
    """Which modules outside the tree the interpreter has, of those that importing it asks for.

    What is there decides what is imported, and so what is asked for next; that ends, since each
    round asks for more names than the one before, and the tree has so many.
    """
    known: dict[str, bool] = {}
    tried: set[str] = set()
    while True:
        wanted = _asked_for(source, _informed(request, known), resources) - tried
        if not wanted:
            return known
        tried |= wanted
        known.update(modules(asked, wanted, live.loaded))


def _asked_for(source: Source, request: Request, resources: Resources) -> set[str]:
    """Every module that an import run asks for, with the packages that it is in."""
    names: set[str] = set()

    def look(study: Study) -> bytes:
        names.update(study.run.platform.asked)
        return b""

    with closing(FactCache(resources.cache)) as cache:
        job = Job(source, request, Files(source.tree, cache), resources.cache, look)
        job.run(1)
        roots = job.conventions.roots
    packages = {package for name in names for package in _packages(name)}
    return names | {name for name in packages if name.partition(".")[0] not in roots}


def _packages(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts))}


def _informed(request: Request, known: Mapping[str, bool]) -> Request:
    """The request, with what the interpreter has in the place of what the tree says of it."""
    return replace(
        request,
        with_modules=tuple(sorted(name for name, exists in known.items() if exists)),
        without_modules=tuple(sorted(name for name, exists in known.items() if not exists)),
    )


def _document(
    coverage: Coverage,
    asked: Interpreter,
    live: Sweep,
    known: Mapping[str, bool],
    rule: Capability,
) -> LiveDocument:
    static = {row.architecture: said_by(row) for row in coverage.rows}
    rows = compared(static, live.said)
    return LiveDocument(
        schema_version=SCHEMA_VERSION,
        capability=rule.name,
        registry=rule.tables[0],
        source=coverage.source,
        python=asked.name,
        platform=live.platform,
        modules=Modules(
            tuple(sorted(name for name, exists in known.items() if exists)),
            tuple(sorted(name for name, exists in known.items() if not exists)),
            tuple(FailingModule(name, error) for name, error in sorted(live.failing.items())),
        ),
        rows=rows,
        differences=tuple(one for row in rows for one in differences(row)),
    )
