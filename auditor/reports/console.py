"""Rich renderables as text, independent of the terminal and the environment they are made in."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType
from rich.text import Text

from auditor.reports.text import literal


def to_text(renderable: RenderableType, *, width: int, color: bool) -> str:
    """What rich would print at ``width``; without trailing blanks, with ANSI codes if ``color``."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(renderable)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def plain(text: str, style: str = "") -> Text:
    """``text`` literally: no markup, no control characters; too long words fold."""
    return Text(literal(text), style=style, overflow="fold")
