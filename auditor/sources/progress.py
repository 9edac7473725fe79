"""What a person sees on stderr while an archive is fetched."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichBar
    from rich.progress import TaskID


class Progress(Protocol):
    """Told about one download after the other; sizes are in bytes."""

    def started(self, name: str, total: int | None) -> None:
        """The download of ``name`` begins; ``total`` is None when the server does not say."""
        ...

    def advanced(self, received: int) -> None:
        """``received`` bytes have arrived since :meth:`started`."""
        ...

    def finished(self) -> None:
        """The download ended, well or not."""
        ...


def console_progress(*, quiet: bool = False, stream: TextIO | None = None) -> Progress | None:
    """The progress display for ``stream`` (stderr): a bar on a terminal, else one line.

    None when ``quiet``.
    """
    out = sys.stderr if stream is None else stream
    if quiet:
        return None
    return BarProgress(out) if out.isatty() else LineProgress(out)


class LineProgress:
    """One line for a download: for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def started(self, name: str, total: int | None) -> None:
        """See :meth:`Progress.started`."""
        size = f" ({total / 1e6:.0f} MB)" if total else ""
        print(f"fetching {name}{size} from the package index", file=self._stream, flush=True)

    def advanced(self, received: int) -> None:
        """See :meth:`Progress.advanced`."""

    def finished(self) -> None:
        """See :meth:`Progress.finished`."""


class BarProgress:
    """A bar drawn with rich that disappears when the download ends: for terminals."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: RichBar | None = None
        self._task: TaskID | None = None

    def started(self, name: str, total: int | None) -> None:
        """See :meth:`Progress.started`."""
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as RichBar

        self._bar = RichBar(
            TextColumn("fetching {task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=Console(file=self._stream),
            transient=True,
        )
        self._task = self._bar.add_task(name, total=total)
        self._bar.start()

    def advanced(self, received: int) -> None:
        """See :meth:`Progress.advanced`."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=received)

    def finished(self) -> None:
        """See :meth:`Progress.finished`."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None
