"""Real Python, asked for what it makes of a tree (:mod:`differential.worker`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from differential.trees import ATTRIBUTES, DEVICE, PREDICATES, Outcome, Tree

_WORKER = Path(__file__).with_name("worker.py")


class CPython:
    """One persistent worker; a request is answered in :meth:`answers`, after :meth:`ask`."""

    def __enter__(self) -> CPython:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-W", "ignore", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def ask(self, tree: Tree, outcomes: tuple[Outcome, ...]) -> None:
        """Send a tree; Python imports it while the caller does something else."""
        request = {
            "files": tree.files,
            "entries": tree.entries,
            "probes": tree.probes,
            "attributes": ATTRIBUTES,
            "runs": [
                {
                    "files": outcome.files,
                    "environment": outcome.environment,
                    "predicates": PREDICATES,
                    "attributes": DEVICE,
                }
                for outcome in outcomes
            ],
        }
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)

    def answers(self) -> list[Any]:
        """One report for each outcome of the last request."""
        assert self._process.stdout is not None
        answers: list[Any] = json.loads(self._process.stdout.readline())
        return answers
