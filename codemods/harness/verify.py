"""``codemod verify``: the term proof, and with an interpreter the tests, the mutants and the ranks.

The patches of a plan go into a copy of the installed package. In it run, one after the other: the
generated test of each patched class; against a test that passes, each mutant of the patch; and two
processes that pick tokens together over ``torch.distributed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import msgspec

from auditor.answers import matches
from auditor.coverage import Row
from auditor.live.asking import Interpreter
from auditor.live.interpreter import LiveError, decoded, run_script, stored
from auditor.ruleset.target import target
from auditor.sources.tree import Source
from codemods.harness.document import Live, MutantResult, Verified
from codemods.harness.files import files_of, named
from codemods.harness.mutants import Mutant, distinct, mutants_of
from codemods.harness.overlay import overlay
from codemods.harness.recipe import Recipe
from codemods.plans import AddMethod, AddMixin, Family, Plan, Trial

RUNNER = Path(__file__).with_name("runner.py")
RANKS = Path(__file__).with_name("ranks.py")
_WORLD = 2

Said = Callable[[str], None]


class _Line(msgspec.Struct, frozen=True):
    """One answer of the runner or of a rank; each has a few of these fields."""

    missing: str | None = None
    package: str | None = None
    platform: str | None = None
    begin: str | None = None
    test: str | None = None
    mutant: str | None = None
    passed: int = 0
    failed: int = 0
    wrong: int = 0
    rows: int = 0
    fault: str = ""
    method: str = ""
    killed: bool = False
    reason: str = ""
    end: bool = False


@dataclass(slots=True)
class _Ran:
    """What came of one test so far."""

    live: Live = "not run"
    passed: int = 0
    failed: int = 0
    reason: str = ""
    mutants: list[MutantResult] = field(default_factory=list)
    ranks: str = ""


def verified(
    plan: Plan,
    source: Source,
    asked: Interpreter | None,
    tell: Said,
    globs: tuple[str, ...] = (),
) -> tuple[Verified, ...]:
    """What is known of every class that is patched, or has the method already.

    Args:
        plan: the patches, proven by the audit, for the architectures asked for.
        globs: the architectures; none for all.
        source: the tree that they are for; with ``asked``, the package that it has.
        asked: an interpreter that has vLLM, or None for the term proof alone.
        tell: told what is being done.

    Raises:
        LiveError: the interpreter cannot be asked.
        OverlayError: its package cannot be copied.
    """
    ran = _run(plan, source, asked, tell) if asked is not None else {}
    found = (*_patched(plan, ran), *_existing(plan, globs))
    return tuple(sorted(found, key=lambda one: (one.architecture, one.cls)))


def _patched(plan: Plan, ran: Mapping[str, _Ran]) -> Iterator[Verified]:
    for trial in plan.trials:
        one = ran.get(trial.cls, _Ran())
        if trial.subject is None:
            one = _Ran("not built", reason=trial.reason)
        yield Verified(
            _architecture(plan, trial),
            trial.cls,
            trial.family,
            "yes",
            one.live,
            one.passed,
            one.failed,
            one.reason,
            tuple(one.mutants),
            one.ranks,
        )


def _architecture(plan: Plan, trial: Trial) -> str:
    return next(item.architecture for item in plan.items if item.cls == trial.cls)


def _existing(plan: Plan, globs: tuple[str, ...]) -> Iterator[Verified]:
    """Classes that have the method: the verdict of the audit, the worst of their platforms."""
    found: dict[str, list[Row]] = {}
    for row in plan.before.rows:
        if row.hasattr and row.class_ is not None and matches(row.architecture, globs):
            found.setdefault(f"{row.module}.{row.class_}", []).append(row)
    order = ("unsafe", "yes?", "yes")
    for cls, rows in sorted(found.items()):
        worst = min(rows, key=lambda row: order.index(row.verdict) if row.verdict in order else 0)
        yield Verified(
            worst.architecture, cls, "", worst.verdict, "not run", 0, 0, worst.reason or "", (), ""
        )


# --- in a real vLLM


def _run(plan: Plan, source: Source, asked: Interpreter, tell: Said) -> dict[str, _Ran]:
    """What came of the tests, by class."""
    trials = named(plan.trials)
    files = files_of(plan.trials)
    changed = {path: text for family in plan.families for path, text in family.after.items()}
    with stored(), TemporaryDirectory(prefix="draftaudit-") as name:
        folder = Path(name)
        tell("copying the package, with every patch in the copy")
        package = overlay(asked.folder / target().package.name, folder / "overlay", changed)
        paths = _written(folder / "tests", files)
        found: dict[str, _Ran] = {}
        wanted = [
            {
                "name": trial.cls,
                "path": str(paths[path]),
                "mutants": [msgspec.to_builtins(one) for one in _mutants(plan, source, trial)],
            }
            for path, trial in trials.items()
        ]
        tell(f"running {len(wanted)} tests, and the mutants of those that pass")
        _tests(asked, package, wanted, found)
        passed = {path: t for path, t in trials.items() if found[t.cls].live == "passed"}
        tell(f"picking tokens of {len(passed)} models on {_WORLD} ranks")
        _ranks(asked, package, folder, passed, paths, found)
        return found


def _written(folder: Path, files: Mapping[str, bytes]) -> dict[str, Path]:
    folder.mkdir()
    paths = {path: folder / Path(path).name for path in files}
    for path, content in files.items():
        paths[path].write_bytes(content)
    return paths


def _mutants(plan: Plan, source: Source, trial: Trial) -> tuple[Mutant, ...]:
    """What is wrong on purpose: each method of the patch that the class's own calls go through."""
    assert trial.subject is not None
    capability = trial.subject.capability
    per_step = any(recipe.per_step for recipe in trial.subject.recipes)
    step = trial.subject.recipes[0].step if per_step else ""
    family = next(family for family in plan.families if family.name == trial.family)
    everything = [
        mutant
        for text, cls in _methods(family, source, trial)
        for mutant in mutants_of(text, cls, capability, step)
    ]
    told = _telling(trial.subject.recipes)
    telling = [mutant for mutant in everything if mutant.fault in told]
    plain = [mutant for mutant in everything if mutant.fault == "another token"]
    # A method with nothing to forget shows by a plainly wrong token that its test can fail.
    return distinct(telling or plain[:1])


def _telling(recipes: Iterable[Recipe]) -> frozenset[str]:
    """Faults that change a token: leaving out an identity, or a remap without a table, does not."""
    found = {"step ignored", "another step"}
    for recipe in recipes:
        found |= {"transform dropped"} if recipe.pre_head else set()
        found |= {"remap forgotten"} if recipe.remap else set()
    return frozenset(found)


def _methods(family: Family, source: Source, trial: Trial) -> Iterator[tuple[bytes, str]]:
    """The files and dotted classes with the methods that a class of the family runs."""
    assert trial.subject is not None
    built = {cls for recipe in trial.subject.recipes for cls in recipe.classes()}
    for edit in family.edits:
        if isinstance(edit, AddMethod) and edit.site.dotted in built:
            yield family.after[edit.site.path], edit.site.dotted
        if isinstance(edit, AddMixin) and edit.site.dotted in built:
            path = f"{edit.mixin.rpartition('.')[0].replace('.', '/')}.py"
            yield source.tree.read(path), edit.mixin


def _tests(
    asked: Interpreter,
    package: Path,
    wanted: Sequence[Mapping[str, object]],
    found: dict[str, _Ran],
) -> None:
    """Run the tests; what ends the interpreter is told of its test, and the others go on."""
    left = list(wanted)
    while left:
        ran = run_script(
            asked.python, RUNNER, {"overlay": str(package), "tests": left}, asked.environment,
            asked.seconds,
        )  # fmt: skip
        lines = decoded(ran.answers, _Line, asked.python)
        _check(lines, package, asked)
        _took(lines, found, asked)
        if lines and lines[-1].end:
            return
        begun = [line.begin for line in lines if line.begin is not None]
        if not begun:
            said = f": {ran.said}" if ran.said else ""
            raise LiveError(f"the tests could not be started: it {ran.ended}{said}",
                            where=str(asked.python))  # fmt: skip
        stopped = found.setdefault(begun[-1], _Ran())
        stopped.live, stopped.reason = "crashed", f"the interpreter {ran.ended}: {ran.said}"
        names = [one["name"] for one in left]
        left = left[names.index(begun[-1]) + 1 :]


def _check(lines: Iterable[_Line], package: Path, asked: Interpreter) -> None:
    """That what ran is the patched copy; an interpreter can have its own idea of what to import."""
    expected = (package / target().package.name).resolve()
    for line in lines:
        if line.package is not None and Path(line.package).resolve() != expected:
            raise LiveError(
                f"it imports {line.package} and not the patched copy",
                where=str(asked.python),
                next_step="See what puts another folder first on its import path.",
            )


def _took(lines: Iterable[_Line], found: dict[str, _Ran], asked: Interpreter) -> None:
    for line in lines:
        if line.missing is not None:
            raise LiveError(
                f"{line.missing} is not installed in this Python",
                where=str(asked.python),
                next_step=f"Run: {asked.python} -m pip install {line.missing}",
            )
        if line.test is not None:
            one = found.setdefault(line.test, _Ran())
            one.passed, one.failed, one.reason = line.passed, line.failed, line.reason
            one.live = "failed" if line.failed else "passed" if line.passed else _unran(line.reason)
        if line.mutant is not None:
            result = MutantResult(line.fault, line.method, line.killed, line.reason)
            found[line.mutant].mutants.append(result)


def _unran(reason: str) -> Live:
    """What it means that a file has no cases: a module outside vLLM is missing, or it is broken."""
    root = target().package.name
    if reason.startswith("ModuleNotFoundError: No module named") and f"'{root}" not in reason:
        return "not importable"
    return "not run" if "Skipped" in reason else "failed"


def _ranks(
    asked: Interpreter,
    package: Path,
    folder: Path,
    trials: Mapping[str, Trial],
    paths: Mapping[str, Path],
    found: dict[str, _Ran],
) -> None:
    """Have two processes pick tokens together, and compare with the whole row of logits."""
    if not trials:
        return
    tests = [
        {
            "name": trial.cls,
            "path": str(paths[path]),
            "step": trial.subject.recipes[0].step,
            "capability": trial.subject.capability,
            "agrees_with": trial.subject.agrees_with,
        }
        for path, trial in trials.items()
        if trial.subject is not None
    ]

    while tests:
        answers = _together(asked, package, folder / f"meeting-{len(tests)}", tests)
        done = 0
        for test in tests:
            done += 1
            found[test["name"]].ranks = _agreement(test["name"], answers)
            if any(_broke_off(test["name"], lines) for lines, _ in answers):
                break
        # A rank that raised has ended, and the other with it; the tests after it get two new ones.
        tests = tests[done:]


def _together(
    asked: Interpreter, package: Path, meeting: Path, tests: Sequence[Mapping[str, str]]
) -> list[tuple[tuple[_Line, ...], str]]:
    """What each rank answered, and how it ended."""
    stop = Event()

    def rank(number: int) -> tuple[tuple[_Line, ...], str]:
        request = {
            "overlay": str(package),
            "rank": number,
            "meeting": str(meeting),
            "tests": tests,
        }
        ran = run_script(asked.python, RANKS, request, asked.environment, asked.seconds, stop)
        return decoded(ran.answers, _Line, asked.python), f"{ran.ended}: {ran.said}"

    with ThreadPoolExecutor(_WORLD) as pool:
        try:
            return list(pool.map(rank, range(_WORLD)))
        except BaseException:
            # The pool waits for its threads, and they for the ranks.
            stop.set()
            raise


def _agreement(cls: str, answers: Sequence[tuple[tuple[_Line, ...], str]]) -> str:
    """``agree``, or in what way two ranks do not."""
    for lines, ended in answers:
        told = _told(cls, lines)
        if told is None:
            return f"a rank {ended}"
        if told.reason or told.wrong:
            return told.reason or f"{told.wrong} of {told.rows} tokens differ"
    return "agree"


def _broke_off(cls: str, lines: Iterable[_Line]) -> bool:
    told = _told(cls, lines)
    return told is None or bool(told.reason)


def _told(cls: str, lines: Iterable[_Line]) -> _Line | None:
    return next((line for line in lines if line.test == cls), None)
