"""How far a fetch is: in the log every few seconds, on a terminal all the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

EVERY_S = 5.0

log = structlog.get_logger()

Tell = Callable[[str], object]


class FetchProgress:
    """Counts the bytes of one version; ``tell`` hears in words what the log says."""

    def __init__(
        self, version: str, total: int, tell: Tell, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._version = version
        self._total = total
        self._tell = tell
        self._clock = clock
        self._fetched = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(version, total=total)

    def __enter__(self) -> Self:
        self._started = self._said = self._clock()
        log.info("weights_fetching", version=self._version, bytes=self._total)
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        event = "weights_fetched" if error is None else "weights_fetch_ended"
        log.info(event, version=self._version, **self._figures())

    def arrived(self, count: int) -> None:
        """Some more bytes are there."""
        self._fetched += count
        self._bar.advance(self._task, count)
        if self._clock() - self._said >= EVERY_S:
            self._said = self._clock()
            log.info("weights_progress", version=self._version, **self._figures())
            self._tell(f"fetched {decimal(self._fetched)} of {decimal(self._total)}")

    def _figures(self) -> dict[str, int]:
        seconds = max(self._clock() - self._started, 1e-3)
        return {
            "fetched_bytes": self._fetched,
            "total_bytes": self._total,
            "bytes_per_second": round(self._fetched / seconds),
        }
