"""Where tables are printed."""

from __future__ import annotations

from rich.console import Console

_WIDE = 240


def screen() -> Console:
    """Standard output; into a pipe or a file no row is folded."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDE)
