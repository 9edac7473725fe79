"""The analyses of one audit, each made once for all of its platforms and both of its processes.

An analysis is kept with the answers that it rests on (:mod:`auditor.headpath.questions`): another
run that would give the same answers takes it over. Two processes tell each other what they have
analysed as they go along, and what they have asked of the files for it. One starts with the first
entry and the other with the last, so that they meet in the middle; neither waits, and what was not
heard of in time is analysed twice, with the same outcome.

Which of two runs makes an analysis is chance, and must not show. So only an analysis is told that
added nothing to its own run: no module, no open condition. Where imports are put off, nearly every
one imports something, and nothing is told at all.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator

from msgspec import structs
from msgspec.structs import replace

from auditor.analysis import Analysis
from auditor.coverage import Head
from auditor.headpath.questions import Answers, mentions
from auditor.processes import Log
from auditor.program import Files
from auditor.values import ClassValue

_Kept = tuple[Answers, Analysis]

#: An analysis is told with the dotted name of its class in the place of that: a class holds its
#: module, and that the whole run. Each run has classes of its own, and puts one there when it takes
#: the analysis over.
_TOLD = {**copyreg.dispatch_table, ClassValue: lambda cls: (str, (cls.dotted,))}


class Analyses:
    """Analyses by what can be seen of a class, each with the answers that it rests on.

    Args:
        known: analyses to begin with.
        exchange: how the other process is told and heard, or None.
    """

    def __init__(
        self,
        known: dict[Hashable, list[_Kept]] | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self._known = known if known is not None else {}
        self._exchange = exchange
        # By identity, with the analyses kept alive.
        self._records: dict[int, tuple[Analysis, Head]] = {}

    def of(self, key: Hashable) -> Iterable[_Kept]:
        """The analyses of classes that look like this one, the other process's among them."""
        if self._exchange is not None:
            for other, answers, analysis in self._exchange.heard():
                self._known.setdefault(other, []).append((answers, analysis))
        return self._known.get(key, ())

    def taken(self, key: Hashable, analysis: Analysis, cls: ClassValue) -> Analysis:
        """An analysis that fits a class; one of the other process gets the class here."""
        if isinstance(analysis.cls, ClassValue):
            return analysis
        own = replace(analysis, cls=cls)
        kept = self._known[key]
        kept[:] = [(answers, own if one is analysis else one) for answers, one in kept]
        return own

    def add(
        self, key: Hashable, answers: Answers, analysis: Analysis, *, tell: bool = True
    ) -> None:
        """Keep an analysis, and ``tell`` the other process of it."""
        self._known.setdefault(key, []).append((answers, analysis))
        if tell and self._exchange is not None:
            self._exchange.tell(key, answers, analysis)

    def record(self, analysis: Analysis, platform: str, write: Callable[[], Head]) -> Head:
        """The record of an analysis, as one platform has it; ``write`` does so for the first."""
        known = self._records.get(id(analysis))
        if known is None:
            known = self._records[id(analysis)] = (analysis, write())
        return structs.replace(known[1], platforms=(platform,))

    def in_two(self, logs: tuple[Log, Log], files: Files) -> tuple[Analyses, Analyses]:
        """The same analyses for this process, and for another that is forked next."""
        one, other = logs
        here, there = Exchange(one, other, files), Exchange(other, one, files)
        return Analyses(self._known, here), Analyses(self._known, there)

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


class Exchange:
    """One of two ends at which analyses are told and heard.

    Args:
        told: the log that this process writes.
        heard: the log that the other one writes.
        files: what both read from; what one asks of them, the other counts as asked.
    """

    def __init__(self, told: Log, heard: Log, files: Files) -> None:
        self._told = told
        self._heard = heard
        self._files = files
        self._noted = len(files.noted(0))

    def tell(self, key: Hashable, answers: Answers, analysis: Analysis) -> None:
        """Tell of an analysis, and of what was asked of the files since the last one.

        One whose terms are nested too deeply to be written is not told.
        """
        noted = self._files.noted(self._noted)
        message = io.BytesIO()
        try:
            pickler = pickle.Pickler(message, pickle.HIGHEST_PROTOCOL)
            pickler.dispatch_table = _TOLD
            pickler.dump((key, answers, analysis, noted))
        except RecursionError:
            return
        self._told.write(message.getvalue())
        self._noted += len(noted)

    def heard(self) -> Iterator[tuple[Hashable, Answers, Analysis]]:
        """What the other process has told since the last call; it is a fork of the same one."""
        for message in self._heard.read():
            key, answers, analysis, noted = pickle.loads(message)
            for path, probe in noted:
                self._files.note(path, probe)
            yield key, answers, analysis
