from __future__ import annotations

import io

from auditor.sources.progress import BarProgress, LineProgress, console_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_one_line() -> None:
    out = io.StringIO()
    progress = console_progress(stream=out)
    assert isinstance(progress, LineProgress)
    progress.started("vllm-0.30.0.tar.gz", 42_000_000)
    progress.advanced(10)
    progress.finished()
    assert out.getvalue() == "fetching vllm-0.30.0.tar.gz (42 MB) from the package index\n"


def test_a_terminal_gets_a_bar_that_disappears() -> None:
    out = Terminal()
    progress = console_progress(stream=out)
    assert isinstance(progress, BarProgress)
    for total in (100, None):
        progress.started("vllm.tar.gz", total)
        progress.advanced(50)
        progress.finished()
    progress.advanced(1)
    progress.finished()


def test_quiet_gets_nothing() -> None:
    assert console_progress(quiet=True, stream=Terminal()) is None
