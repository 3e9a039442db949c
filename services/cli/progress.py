"""How the start and the stop of a mesh look: a live table, or plain lines without a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

_SETTLED = frozenset({"ready", "stopped"})


class Progress:
    """Shows each part's latest state and when it was reached. Used as ``with``."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._states: dict[str, tuple[str, float]] = {}
        self._spinner = Spinner("dots")
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(get_renderable=self._table, console=self._console)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.settle()

    def settle(self) -> None:
        """Leaves the table as it stands; later states are plain lines."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def report(self, part: str, state: str) -> None:
        """Takes a part's new state; the same one again is no news."""
        known, _ = self._states.get(part, ("", 0.0))
        if known == state:
            return
        elapsed = time.monotonic() - self._began
        self._states[part] = (state, elapsed)
        if self._live is None:
            self._console.print(Text(f"{elapsed:6.1f} s  {part:<16} {state}"), soft_wrap=True)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for part, (state, elapsed) in self._states.items():
            mark = Text("•") if state in _SETTLED or " " in state else self._spinner
            table.add_row(mark, Text(part), Text(state), Text(f"{elapsed:.1f} s", style="dim"))
        return table
