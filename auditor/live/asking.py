"""What an interpreter says: where its vLLM is, what else it has, and what its classes are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from auditor.live.document import Raised, Said
from auditor.live.interpreter import Line, LiveError, Ran, run
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.platforms import PlatformRule
from auditor.ruleset.target import TargetRule

_UNREAD = "the entry is not a pair of strings"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that has vLLM.

    Attributes:
        python: its file.
        name: its implementation and version.
        folder: the folder that holds the package.
        environment: the environment variables that it runs with.
        seconds: how long it may take from one answer to the next.
    """

    python: Path
    name: str
    folder: Path
    environment: Mapping[str, str]
    seconds: float

    def ask(self, **request: object) -> Ran:
        """Run the probe once."""
        return run(self.python, request, self.environment, self.seconds)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What the classes of every entry said, and what that took.

    Attributes:
        platform: the name of the rule that is the platform it ran on.
        entries: the keys of the table, matched by the globs or not.
        said: of each entry asked for.
        loaded: modules that were loaded in the end.
        failing: modules outside the package whose import by it raised, with what they raised.
    """

    platform: str
    entries: tuple[str, ...]
    said: Mapping[str, Said]
    loaded: frozenset[str]
    failing: Mapping[str, Raised]


def interpreter(
    python: Path, package: str, environment: Mapping[str, str], seconds: float
) -> Interpreter:
    """The interpreter with the place of its vLLM; the package is not imported for that.

    Raises:
        LiveError: it does not run, has no such package, or one that is not a folder.
    """
    ran = run(python, {"do": "locate", "package": package}, environment, seconds)
    where = str(python)
    if ran.ended or not ran.lines:
        raise LiveError(_with(ran), where=where, next_step="Check that it is a Python.")
    told = ran.lines[0]
    if told.folders is None:
        raise LiveError(
            f"no {package} is installed in this Python",
            where=where,
            next_step=f"Install {package} there, or give another Python with --live.",
        )
    folders = [Path(folder) for folder in told.folders]
    if len(folders) != 1 or not (folders[0] / "__init__.py").is_file():
        raise LiveError(
            f"what it imports as {package} is not the folder of a package",
            where=where,
            next_step="Give a Python with an installation of one release.",
        )
    return Interpreter(python, str(told.python), folders[0].parent, environment, seconds)


def sweep(
    asked: Interpreter,
    target: TargetRule,
    capability: Capability,
    platforms: Sequence[PlatformRule],
    globs: Sequence[str],
) -> Sweep:
    """Import the class of every entry; one that ends the process does not end the sweep.

    All are imported by one process, as a server that asks for each would. Where an entry ends it,
    another one goes on with those behind it.

    Raises:
        LiveError: vLLM or its registry cannot be imported, or it runs on no known platform.
    """
    said: dict[str, Said] = {}
    failing: dict[str, Raised] = {}
    loaded: set[str] = set()
    while True:
        ran = asked.ask(
            do="sweep",
            package=target.package.name,
            current_platform=target.package.current_platform,
            predicates=sorted({name for rule in platforms for name in rule.predicates}),
            table=capability.tables[0],
            relative_to=target.registry.package,
            attribute=capability.probed,
            globs=list(globs),
            skip=sorted(said),
        )
        platform, entries = _start(asked, ran, platforms)
        said.update((line.architecture, _said(line)) for line in ran.lines if line.architecture)
        failing.update(_failing(ran.lines))
        loaded.update(name for line in ran.lines for name in line.loaded or ())
        if not ran.ended:
            return Sweep(platform, entries, said, frozenset(loaded), failing)
        name = next((line.begin for line in reversed(ran.lines) if line.begin), None)
        if name is None or name in said:
            # It ended between two entries, so that no entry can be told to be the reason.
            raise LiveError(_with(ran), where=str(asked.python), next_step=_LOOK)
        said[name] = _of_end(ran)


_LOOK = "See what it prints when it imports vLLM by itself."


def modules(asked: Interpreter, names: Iterable[str], loaded: Iterable[str]) -> dict[str, bool]:
    """Which modules it has; one of which that cannot be said without importing it is left out.

    Raises:
        LiveError: the run fails.
    """
    ran = asked.ask(do="modules", names=sorted(names), loaded=sorted(loaded))
    if ran.ended:
        raise LiveError(_with(ran), where=str(asked.python), next_step=_LOOK)
    return {
        line.module: line.exists
        for line in ran.lines
        if line.module is not None and line.exists is not None
    }


def _start(
    asked: Interpreter, ran: Ran, platforms: Sequence[PlatformRule]
) -> tuple[str, tuple[str, ...]]:
    """The platform and the keys of the table: what is answered before the first entry."""
    predicates = next((line.predicates for line in ran.lines if line.predicates is not None), None)
    entries = next((line.entries for line in ran.lines if line.entries is not None), None)
    where = str(asked.python)
    if predicates is None or entries is None:
        what = f"its vLLM cannot be imported: the interpreter {_with(ran)}"
        raise LiveError(what, where=where, next_step=_LOOK)
    fitting = list(_fitting(predicates, platforms))
    if len(fitting) != 1:
        true = ", ".join(sorted(name for name, value in predicates.items() if value)) or "nothing"
        raise LiveError(
            f"its vLLM runs on no platform that is known here (of its predicates, true: {true})",
            where=where,
            next_step="Run it on a machine that has the device.",
        )
    return fitting[0], tuple(entries)


def _fitting(said: Mapping[str, bool], platforms: Sequence[PlatformRule]) -> Iterator[str]:
    """The platforms of which each predicate that was asked says what the rule has."""
    for rule in platforms:
        if all(rule.predicates.get(name, value) == value for name, value in said.items()):
            yield rule.name


def _failing(lines: Iterable[Line]) -> Iterator[tuple[str, Raised]]:
    for line in lines:
        if line.outside is not None and line.error is not None:
            yield line.outside, Raised(line.error["type"], line.error["message"])


def _said(line: Line) -> Said:
    if line.unread is not None:
        return Said(None, reason=line.unread)
    if line.error is not None:
        return Said(False, error=Raised(line.error["type"], line.error["message"]))
    if line.class_ is None:
        kind = None if line.not_a_class is None else f"it is a {line.not_a_class}, no class"
        return Said(True, hasattr=line.hasattr, reason=kind)
    return Said(True, f"{line.module}.{line.class_}", line.hasattr, line.owner)


def _of_end(ran: Ran) -> Said:
    """An entry at which the process ended; one that took too long may load in the end."""
    return Said(None if ran.late else False, reason=f"the interpreter {_with(ran)}")


def _with(ran: Ran) -> str:
    return f"{ran.ended}, having printed last: {ran.said}" if ran.said else ran.ended
