"""Measure an audit of a pinned release, and print it as ratios within this one run.

    python bench/run.py [--release 0.33.0] [--rounds 3] [--live PYTHON]

The release is fetched as `audit` fetches it and written to a temporary folder, so that files can
be touched. Every measurement is a process of its own. Beside our figures stand, on the same files:

* the floor: ``ast.parse`` of every file that the audit reads, in one process;
* griffe, which loads the whole package statically and knows nothing of platforms;
* LibCST, parsing one file in ten of those that the audit reads;
* ty, checking one file that imports the same classes;
* with ``--live PYTHON``, an interpreter that has vLLM: importing the classes for real, on the one
  platform that it runs on.

A tool that is not installed is named as such, and no ratio is printed for it.

The budgets of the project are in seconds, and go with three figures of the machine that they were
set on (:data:`THEIRS`). So much longer as those three take here, so much longer may an audit take:
the last part of the report gives every budget in seconds of this machine, by the median of the
three, and what was measured. Python finds its bytecode, as it does of a package that is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from auditor.api import Request
from auditor.job import Job
from auditor.program import Files
from auditor.sources.open import open_source

AUDIT = [sys.executable, "-c", "from auditor.main import audit; audit()"]
FLOOR = """
import ast, gc, sys
gc.disable()
for path in sys.stdin.read().split("\\0"):
    with open(path, "rb") as file:
        ast.parse(file.read())
"""
GRIFFE = """
import logging, sys, griffe
logging.disable(logging.CRITICAL)
griffe.load("vllm", search_paths=[sys.argv[1]], allow_inspection=False)
"""
# Runs a command, and says on stderr how it ended, its wall time in seconds and peak memory in MiB.
WATCH = """
import resource, subprocess, sys, time
start = time.perf_counter()
status = subprocess.run(sys.argv[1:]).returncode
taken = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(status, taken, peak, file=sys.stderr)
"""
LIVE = """
import importlib, json, sys
for module, name in json.load(sys.stdin):
    try:
        getattr(importlib.import_module(module), name)
    except Exception:
        pass
"""


CST = """
import sys, time, libcst
paths = sys.stdin.read().split("\\0")[::10]
start = time.perf_counter()
for path in paths:
    with open(path, "rb") as file:
        libcst.parse_module(file.read())
print((time.perf_counter() - start) / len(paths))
"""
#: Seconds on the machine of the budgets.
THEIRS = {
    "griffe, the whole package": 20.0,
    "LibCST, one file": 0.027,
    "live import, its one platform": 9.0,
}
#: What is budgeted: a label of the report and seconds on that machine; the cold figure has the
#: second in it that judging heads may add, the warm ones a tenth. A file may be touched by a
#: comment, which changes no facts, or by a definition or an import of a library of Python's own,
#: which change no answer where nothing speaks of them. After a statement that does more, every
#: platform is run again; that is measured too, and no budget names it.
BUDGETS = {
    "cold, nothing cached": 5.0,
    "warm, nothing changed": 0.6,
    "warm, a comment added to one file": 0.7,
    "warm, a definition added to one file": 0.7,
    "warm, an import added to one file": 0.7,
    "cold, ordinary models as drafts": 6.0,
    "audit --help": 0.2,
}
ORDINARY = ["--registry", "_TEXT_GENERATION_MODELS"]


@dataclass(frozen=True)
class Measured:
    """Median wall time in seconds, and peak memory of one process in MiB."""

    seconds: float
    peak: float


def main() -> None:
    """Measure, print a table, and exit."""
    parser = argparse.ArgumentParser(description="Measure an audit of a pinned release.")
    parser.add_argument("--release", default="0.33.0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--live", metavar="PYTHON", help="an interpreter that has vLLM")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = folder / "tree"
        write_release(options.release, tree)
        print(f"vllm {options.release}, {os.cpu_count()} processors, all platforms")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        measured = ours(tree, folder / "cache", options.rounds)
        measured |= others(tree, folder, options.rounds, options.live)
        scaled(measured)


def write_release(version: str, folder: Path) -> None:
    """Write the files of a release below ``folder``."""
    tree = open_source(version, cwd=Path.cwd()).tree
    for path in tree.files():
        if path.endswith((".py", ".txt", "PKG-INFO")):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tree.read(path))


def ours(tree: Path, cache: Path, rounds: int) -> dict[str, float]:
    """Seconds by label: cold, warm, after touching one file, and of what may be asked beside."""
    report = cache.parent / "report.json"
    command = [*AUDIT, "--vllm", str(tree), "--cache-dir", str(cache), "--format", "json"]
    command += ["-o", str(report), "--quiet"]

    def forget() -> None:
        shutil.rmtree(cache, ignore_errors=True)

    measure(command, 1)  # writes the bytecode
    ordinary = measure([*command, *ORDINARY], rounds, before=forget)
    cold = measure(command, rounds, before=forget)
    warm = measure(command, rounds)
    with touched(tree, "\n# a comment\n") as touch:
        comment = measure(command, rounds, before=touch)
    with touched(tree, "\n_touched = 1\n") as touch:
        definition = measure(command, rounds, before=touch)
    with touched(tree, "\nimport os\n") as touch:
        imported = measure(command, rounds, before=touch)
    with touched(tree, "\nprint()\n") as touch:
        called = measure(command, rounds, before=touch)
    usage = measure([*AUDIT, "--help"], rounds)
    files = closure(tree)
    floor = measure([sys.executable, "-c", FLOOR], rounds, stdin="\0".join(files))
    line("files read", f"{len(files)}")
    line("floor: ast.parse of these files", seconds(floor), "1.00")
    found = {
        "cold, nothing cached": cold,
        "warm, nothing changed": warm,
        "warm, a comment added to one file": comment,
        "warm, a definition added to one file": definition,
        "warm, an import added to one file": imported,
        "warm, a call added to one file": called,
        "cold, ordinary models as drafts": ordinary,
        "audit --help": usage,
    }
    for label, measured in found.items():
        line(label, seconds(measured), ratio(measured, floor))
    line("peak memory, cold", f"{cold.peak:.0f} MiB")
    line("peak memory, warm", f"{warm.peak:.0f} MiB")
    parsed = subprocess.run(
        [sys.executable, "-c", CST],
        input="\0".join(files),
        text=True,
        capture_output=True,
        check=True,
    )
    each = float(parsed.stdout)
    line("LibCST, one file", f"{each * 1000:.1f} ms")
    return {label: measured.seconds for label, measured in found.items()} | {
        "LibCST, one file": each
    }


def others(tree: Path, folder: Path, rounds: int, live: str | None) -> dict[str, float]:
    """What other tools need for the same files, in seconds by label."""
    found: dict[str, float] = {}
    entries = classes(folder / "report.json")
    label = "griffe, the whole package"
    if importlib.util.find_spec("griffe") is not None:
        loaded = measure([sys.executable, "-c", GRIFFE, str(tree)], 1)
        line(label, seconds(loaded))
        found[label] = loaded.seconds
    else:
        line(label, "not installed")
    ty = shutil.which("ty", path=str(Path(sys.executable).parent)) or shutil.which("ty")
    if ty is not None:
        probe = tree / "probe.py"
        probe.write_text("".join(f"from {m} import {c}\n" for m, c in entries))
        line(
            "ty check, a file that imports them",
            seconds(measure([ty, "check", "probe.py"], rounds, cwd=tree, check=False)),
        )
        probe.unlink()
    else:
        line("ty", "not installed")
    label = "live import, its one platform"
    if live is not None:
        command = [live, "-c", LIVE]
        measure(command, 1, stdin=json.dumps(entries), check=False)  # writes the bytecode
        imported = measure(command, rounds, stdin=json.dumps(entries), check=False)
        line(label, seconds(imported))
        found[label] = imported.seconds
    else:
        line(label, "no --live given")
    return found


def scaled(measured: dict[str, float]) -> None:
    """The budgets in seconds of this machine, beside what was measured."""
    factors = {
        label: measured[label] / theirs for label, theirs in THEIRS.items() if label in measured
    }
    print("so many times longer than on the machine of the budgets")
    for label, factor in factors.items():
        line(label, f"{factor:.2f}")
    factor = statistics.median(factors.values())
    print(f"budgets, in seconds of this machine (times {factor:.2f})")
    for label, budget in BUDGETS.items():
        here, verdict = budget * factor, "over" if measured[label] > budget * factor else "kept"
        line(label, f"{here:.2f} s", f"{measured[label]:.2f} s", verdict)


def closure(tree: Path) -> list[str]:
    """The Python files that the audit reads, from its own account."""
    source = open_source(str(tree), cwd=Path.cwd())
    job = Job(source, Request(), Files(source.tree))
    _, grounds = job.run(processes=1)
    return [str(tree / path) for path in sorted(grounds.read)]


def classes(report: Path) -> list[tuple[str, str]]:
    """Module and name of every class that some platform resolves to."""
    rows = json.loads(report.read_text())["rows"]
    return sorted({(row["module"], row["class"]) for row in rows if row["module"]})


@contextmanager
def touched(tree: Path, text: str) -> Iterator[Callable[[], None]]:
    """A function that appends ``text`` to one file of the closure; undone at the end."""
    path = tree / "vllm" / "model_executor" / "models" / "deepseek_mtp.py"
    original = path.read_bytes()
    count = 0

    def touch() -> None:
        nonlocal count
        count += 1
        path.write_bytes(original + text.encode() * count)

    try:
        yield touch
    finally:
        path.write_bytes(original)


def measure(
    command: Sequence[str],
    rounds: int,
    *,
    before: Callable[[], None] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
    check: bool = True,
) -> Measured:
    """Run a command several times, each after ``before``.

    Peak memory is the largest of any process that the command started itself with.
    """
    times: list[float] = []
    peaks: list[float] = []
    for _ in range(rounds):
        if before is not None:
            before()
        watched = [sys.executable, "-c", WATCH, *command]
        done = subprocess.run(
            watched, input=stdin, text=True, capture_output=True, cwd=cwd, check=False
        )
        *_, status, seconds_, peak = done.stderr.split()
        if check and int(status) not in (0, 3):
            raise SystemExit(f"{command[:3]} ended with {status}:\n{done.stderr[-2000:]}")
        times.append(float(seconds_))
        peaks.append(float(peak))
    return Measured(statistics.median(times), max(peaks))


def seconds(measured: Measured) -> str:
    """A time with its unit."""
    return f"{measured.seconds:.2f} s"


def ratio(measured: Measured, floor: Measured) -> str:
    """How many times the floor it takes."""
    return f"{measured.seconds / floor.seconds:.2f}"


def line(what: str, *figures: str) -> None:
    """Print one line: what was measured, then its figures."""
    print(f"  {what:<40}" + "".join(f"{figure:>12}" for figure in figures))


if __name__ == "__main__":
    main()
