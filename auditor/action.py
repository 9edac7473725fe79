"""What the action for GitHub Actions does (``action.yml``): ``python -m auditor.action``.

Inputs come as environment variables and are handed to ``audit`` as arguments; none is ever part
of a shell command. A pull request is compared with its base, anything else is audited alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from auditor import main

OK, FINDINGS, INCOMPLETE = 0, 1, 3

#: A revision that GitHub gives for a branch that is new.
_NO_COMMIT = "0" * 40
_OPEN = "part of the input could not be analysed; the report lists it"
#: Seconds that git may take to fetch one commit.
_FETCH_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of the action; empty where one is not given.

    Attributes:
        path: the folder of the vLLM checkout.
        platforms: names separated by commas; all where empty.
        fail_on: cells that fail the job where nothing is compared.
        base: the revision to compare with; that of the pull request where empty.
        baseline: a file to compare with instead.
        drift_fail_on: kinds of change that fail the job; the usual ones where empty.
        sarif: the file that SARIF is written to; none where empty.
        cache: the folder of the cache.
    """

    path: str
    platforms: str
    fail_on: str
    base: str
    baseline: str
    drift_fail_on: str
    sarif: str
    cache: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Inputs:
        """The inputs as the variables that ``action.yml`` sets."""
        names = {name: f"DRAFTAUDIT_{name.upper()}" for name in cls.__slots__}
        given = {name: environ.get(variable, "").strip() for name, variable in names.items()}
        return cls(**{**given, "path": given["path"] or "."})

    @property
    def common(self) -> list[str]:
        """The arguments of every audit."""
        options = {"--vllm": self.path, "--platform": self.platforms, "--cache-dir": self.cache}
        return [f"{name}={value}" for name, value in options.items() if value]


def run(environ: Mapping[str, str]) -> int:
    """Audit, report, and return the exit code of the step.

    The SARIF file is of the whole audit: GitHub itself tells which alerts are new. Annotations
    and summary are of what changed, where there is something to compare with.
    """
    inputs = Inputs.of(environ)
    against = _against(inputs, environ)
    summary = ["--summary"] if environ.get("GITHUB_STEP_SUMMARY") else []
    code = OK
    if inputs.sarif:
        code = _audit(*inputs.common, "--format=sarif", f"--output={inputs.sarif}", "--quiet")
    written = code in (OK, INCOMPLETE)
    if incomplete := code == INCOMPLETE:
        _say("warning", _OPEN)
    if written:
        code = _audit(*_command(inputs, against), "--format=github", *summary)
    _output(environ, "sarif", inputs.sarif if written else "")
    _output(environ, "compared-with", inputs.baseline or against or "")
    _output(environ, "exit-code", str(code))
    if code == INCOMPLETE:
        if not incomplete:
            _say("warning", _OPEN)
        return OK
    if code not in (OK, FINDINGS):
        _say("error", f"the audit ended with {code}; the log says why")
    return code


def _command(inputs: Inputs, against: str | None) -> list[str]:
    """What is annotated: a comparison, or the audit alone."""
    if inputs.baseline or against:
        before = ["--baseline", inputs.baseline] if inputs.baseline else ["--against", against]
        fails = [f"--fail-on={inputs.drift_fail_on}"] if inputs.drift_fail_on else []
        return ["drift", *inputs.common, f"{before[0]}={before[1]}", *fails]
    fails = [f"--fail-on={inputs.fail_on}"] if inputs.fail_on else []
    return [*inputs.common, *fails]


def _audit(*args: str) -> int:
    code = main.run(main.command, args, "audit")
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _against(inputs: Inputs, environ: Mapping[str, str]) -> str | None:
    """``PATH@COMMIT`` of what to compare with; None where there is nothing.

    Where there should be something and it is not found, that is said: no comparison that was
    asked for is left out silently.
    """
    branch = environ.get("GITHUB_BASE_REF", "")
    if inputs.baseline or not (inputs.base or branch):
        return None
    if inputs.base == _NO_COMMIT:
        _say("notice", "nothing to compare with: the branch is new")
        return None
    git = _Git(inputs.path)
    commit = git.given(inputs.base) if inputs.base else git.base_of(branch, environ)
    if commit is None:
        asked = inputs.base or f"the base branch {branch}"
        _say("warning", f"{asked} is not in the checkout and cannot be fetched: the checkout is "
                        "audited alone. Check out with fetch-depth: 2, or more.")  # fmt: skip
        return None
    return f"{inputs.path}@{commit}"


class _Git:
    """Questions to the git of the checkout; names are always whole refs, never options."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def given(self, revision: str) -> str | None:
        """The commit of a revision that a user named, fetched where it is missing."""
        found = self._commit(revision)
        if found is None and not revision.startswith("-"):
            fetched = self._fetch(revision)
            # Of an earlier fetch where this one failed.
            found = self._commit("FETCH_HEAD") if fetched else None
        return found

    def base_of(self, branch: str, environ: Mapping[str, str]) -> str | None:
        """What the checked-out pull request would be merged into.

        The commit that GitHub tests, ``refs/pull/N/merge``, has the base as its first parent. Where
        another one is checked out, the base is where both branches part.
        """
        if self._commit("HEAD^2") and self._commit("HEAD") == environ.get("GITHUB_SHA"):
            return self._commit("HEAD^1")
        ref = f"refs/remotes/origin/{branch}"
        if self._commit(ref) is None:
            self._fetch(f"+refs/heads/{branch}:{ref}")
        return self._ask("merge-base", "HEAD", ref) or self._commit(ref)

    def _fetch(self, what: str) -> bool:
        return self._ask("fetch", "--no-tags", "--depth=1", "origin", what) is not None

    def _commit(self, revision: str) -> str | None:
        return self._ask("rev-parse", "--verify", "--quiet", "--end-of-options",
                         f"{revision}^{{commit}}") or None  # fmt: skip

    def _ask(self, *args: str) -> str | None:
        """What git prints; None where it fails, which the log of the step shows."""
        try:
            done = subprocess.run(
                ["git", "-C", self._folder, *args],
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                timeout=_FETCH_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"git {args[0]}: {error}", file=sys.stderr)
            return None
        return done.stdout.strip() if done.returncode == 0 else None


def _say(command: str, text: str) -> None:
    """An annotation without a place."""
    from auditor.reports.github import message

    print(message(command, text), flush=True)


def _output(environ: Mapping[str, str], name: str, value: str) -> None:
    """Set an output of the step; the delimiter cannot be foreseen by who chose the value."""
    target = environ.get("GITHUB_OUTPUT")
    if target:
        mark = f"draftaudit-{uuid.uuid4()}"
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(f"{name}<<{mark}\n{value}\n{mark}\n")


if __name__ == "__main__":
    sys.exit(run(os.environ))
