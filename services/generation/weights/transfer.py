"""Brings the ranges of a file in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue

from services.chassis.file_store import FileStore
from services.generation.weights.faults import FetchStopped, WrongLength
from services.generation.weights.partial import Partial, Range
from services.generation.weights.retries import Retries

_LOOK_S = 0.1
"""Between two looks for a stop."""

Asked = SimpleQueue[Range | None]
Answers = SimpleQueue[tuple[Range, bytes | Exception]]


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How files are fetched. Memory it takes: ``range_bytes`` times ``parallel``."""

    range_bytes: int = 8 * 2**20
    parallel: int = 8
    attempts: int = 6
    """Times that a range is asked for."""
    tries: int = 2
    """Times that a file is fetched whose content is wrong."""


class Transfer:
    """Ranges from one store, ``parallel`` at a time; ends early once ``stopped`` is set."""

    def __init__(
        self, store: FileStore, parallel: int, retries: Retries, stopped: threading.Event
    ) -> None:
        self._store = store
        self._parallel = parallel
        self._retries = retries
        self._stopped = stopped

    def run(self, path: str, partial: Partial, arrived: Callable[[int], None]) -> None:
        """Fills ``partial``; ``arrived`` hears of each range's bytes.

        Raises WeightsUnavailable, WrongLength with what came instead in the file,
        OSError of the disk, or FetchStopped at once: readers that still wait for
        the store then end by themselves, with nowhere to write.
        """
        missing = partial.missing
        ranges, readers = iter(missing), min(self._parallel, len(missing))
        asked, answers = Asked(), Answers()
        for part in islice(ranges, readers):
            asked.put(part)
        for _ in range(readers):
            self._start_reader(path, asked, answers)
        try:
            for _ in missing:
                part, data = self._next(answers)
                _put(partial, part, data)
                arrived(part.length)
                asked.put(next(ranges, None))
        finally:
            for _ in range(readers):
                asked.put(None)

    def _start_reader(self, path: str, asked: Asked, answers: Answers) -> None:
        """A thread that nobody has to wait for when the process ends."""
        reader = threading.Thread(target=self._answer, args=(path, asked, answers), daemon=True)
        reader.start()

    def _answer(self, path: str, asked: Asked, answers: Answers) -> None:
        while (part := asked.get()) is not None:
            try:
                answers.put((part, self._read(path, part)))
            except Exception as error:  # raised again where it is taken out
                answers.put((part, error))

    def _read(self, path: str, part: Range) -> bytes:
        def ask() -> bytes:
            data = self._store.read(path, part.start, part.end)
            if len(data) != part.length:
                raise WrongLength(part.length, data)
            return data

        return self._retries.run(path, ask)

    def _next(self, answers: Answers) -> tuple[Range, bytes | Exception]:
        while True:
            if self._stopped.is_set():
                raise FetchStopped("stopped while it fetched weights")
            try:
                return answers.get(timeout=_LOOK_S)
            except Empty:
                continue


def _put(partial: Partial, part: Range, data: bytes | Exception) -> None:
    if isinstance(data, WrongLength):
        partial.cut(part, data.data)
    if isinstance(data, Exception):
        raise data
    partial.put(part, data)
