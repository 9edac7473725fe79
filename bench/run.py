"""Measure an audit of a pinned release, and print it as ratios within this one run.

    python bench/run.py [--release 0.33.0] [--rounds 3] [--live PYTHON]

The release is fetched as `audit` fetches it and written to a temporary folder, so that files can
be touched. Every measurement is a process of its own. Beside our figures stand, on the same files:

* the floor: ``ast.parse`` of every file that the audit reads, in one process;
* griffe, which loads the whole package statically and knows nothing of platforms;
* ty, checking one file that imports the same classes;
* with ``--live PYTHON``, an interpreter that has vLLM: importing the classes for real, on the one
  platform that it runs on.

A tool that is not installed is named as such, and no ratio is printed for it.
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
        ours(tree, folder / "cache", options.rounds)
        others(tree, folder, options.rounds, options.live)


def write_release(version: str, folder: Path) -> None:
    """Write the files of a release below ``folder``."""
    tree = open_source(version, cwd=Path.cwd()).tree
    for path in tree.files():
        if path.endswith((".py", ".txt", "PKG-INFO")):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tree.read(path))


def ours(tree: Path, cache: Path, rounds: int) -> None:
    """Cold, warm, and after touching one file; each with and without starting Python."""
    command = [*AUDIT, "--vllm", str(tree), "--cache-dir", str(cache), "--format", "json"]
    report = cache.parent / "report.json"
    command += ["-o", str(report), "--quiet"]

    def forget() -> None:
        shutil.rmtree(cache, ignore_errors=True)

    cold = measure(command, rounds, before=forget)
    warm = measure(command, rounds)
    with touched(tree, "\n# a comment\n") as touch:
        comment = measure(command, rounds, before=touch)
    with touched(tree, "\n_touched = 1\n") as touch:
        statement = measure(command, rounds, before=touch)
    files = closure(tree)
    floor = measure([sys.executable, "-c", FLOOR], rounds, stdin="\0".join(files))
    line("files read", f"{len(files)}")
    line("floor: ast.parse of these files", seconds(floor), "1.00")
    line("cold, nothing cached", seconds(cold), ratio(cold, floor))
    line("warm, nothing changed", seconds(warm), ratio(warm, floor))
    line("warm, a comment added to one file", seconds(comment), ratio(comment, floor))
    line("warm, a statement added to one file", seconds(statement), ratio(statement, floor))
    line("audit --help", seconds(measure([*AUDIT, "--help"], rounds)))
    line("peak memory, cold", f"{cold.peak:.0f} MiB")
    line("peak memory, warm", f"{warm.peak:.0f} MiB")


def others(tree: Path, folder: Path, rounds: int, live: str | None) -> None:
    """What other tools need for the same files."""
    entries = classes(folder / "report.json")
    if importlib.util.find_spec("griffe") is not None:
        loaded = measure([sys.executable, "-c", GRIFFE, str(tree)], 1)
        line("griffe, the whole package", seconds(loaded))
    else:
        line("griffe", "not installed")
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
    if live is not None:
        imported = measure([live, "-c", LIVE], 1, stdin=json.dumps(entries), check=False)
        line("live import, its one platform", seconds(imported))
    else:
        line("live import", "no --live interpreter given")


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
