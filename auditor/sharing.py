"""The analyses of one audit, each made once for all of its platforms and both of its processes.

An analysis is kept with the answers that it rests on (:mod:`auditor.headpath.questions`): another
run that would give the same answers takes it over. Two processes tell each other what they have
analysed as they go along. One starts with the first entry and the other with the last, so that
they meet in the middle; neither waits, and what was not heard of in time is analysed twice, with
the same outcome.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Hashable, Iterable
from typing import Any

from auditor.analysis import Analysis
from auditor.headpath.questions import Answers, mentions
from auditor.processes import Log
from auditor.values import ClassValue

_Kept = tuple[Answers, Analysis]


class Analyses:
    """Analyses by what can be seen of a class, each with the answers that it rests on.

    Args:
        known: analyses to begin with.
        told: the log of what is analysed here, or None.
        heard: the log of what the other process analyses, or None.
    """

    def __init__(
        self,
        known: dict[Hashable, list[_Kept]] | None = None,
        told: Log | None = None,
        heard: Log | None = None,
    ) -> None:
        self._known = known if known is not None else {}
        self._told = told
        self._heard = heard

    def of(self, key: Hashable) -> Iterable[_Kept]:
        """The analyses of classes that look like this one, the other process's among them."""
        for message in self._heard.read() if self._heard is not None else ():
            at, answers, analysis = _Received(io.BytesIO(message)).load()
            self._known.setdefault(at, []).append((answers, analysis))
        return self._known.get(key, ())

    def add(self, key: Hashable, answers: Answers, analysis: Analysis) -> None:
        """Keep an analysis, and tell the other process of it."""
        self._known.setdefault(key, []).append((answers, analysis))
        if self._told is not None:
            message = io.BytesIO()
            _Told(message, pickle.HIGHEST_PROTOCOL).dump((key, answers, analysis))
            self._told.write(message.getvalue())

    def beside(self, told: Log, heard: Log) -> Analyses:
        """The same analyses, in one of two processes."""
        return Analyses(self._known, told, heard)

    def without(self, paths: frozenset[str]) -> Analyses:
        """Those that rest on none of these files."""
        return Analyses(
            {
                key: kept
                for key, found in self._known.items()
                if not mentions(key, paths)
                and (kept := [one for one in found if not mentions(tuple(one[0].values()), paths)])
            }
        )


class _Told(pickle.Pickler):
    """Writes an analysis without its class, which each run has of its own.

    A class holds its module, and that the whole run.
    """

    def persistent_id(self, obj: Any) -> str | None:
        return obj.dotted if isinstance(obj, ClassValue) else None


class _Received(pickle.Unpickler):
    """Reads what :class:`_Told` wrote in a process forked from the same one; nothing from outside.

    Where the class stood is its dotted name: whoever takes the analysis over puts its own there.
    """

    def persistent_load(self, pid: Any) -> str:
        return str(pid)
