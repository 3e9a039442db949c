"""A file on its way: what has come of it so far, kept for whoever goes on with it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Bytes ``start`` to ``end`` of a file."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Bytes in it."""
        return self.end - self.start


class Partial:
    """``path`` with the bytes and ``path``.ranges with a line for each range that is there.

    A line is written after its bytes, so that a process that is killed leaves no
    line without them; after a loss of power the file's hash tells. Used by one
    process at a time, and one thread.
    """

    def __init__(self, path: Path, size: int, range_bytes: int) -> None:
        self._path = path
        self._journal_path = journal_of(path)
        self._size = size
        self._head = json.dumps({"size": size, "range_bytes": range_bytes})
        self._ranges = [
            Range(start, min(start + range_bytes, size)) for start in range(0, size, range_bytes)
        ]

    def __enter__(self) -> Self:
        """Raises OSError where the disk refuses."""
        self._here = self._recall()
        if not self._here:
            self._journal_path.write_text(self._head + "\n")
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(self._file, self._size)
        self._journal = os.open(self._journal_path, os.O_WRONLY | os.O_APPEND)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._journal)
        os.close(self._file)

    @property
    def missing(self) -> list[Range]:
        """What has not come yet, in order."""
        return [part for part in self._ranges if part.start not in self._here]

    def put(self, part: Range, data: bytes) -> None:
        """Writes a range that has come. Raises OSError where the disk refuses."""
        self._write(part.start, data)
        os.write(self._journal, f"{part.start}\n".encode())

    def cut(self, part: Range, data: bytes) -> None:
        """Writes what came in place of a range; the file is then of no more use but to look at."""
        self._write(part.start, data)
        os.ftruncate(self._file, part.start + len(data))

    def flush(self) -> None:
        """Returns once the bytes are on the disk."""
        os.fsync(self._file)

    def _write(self, place: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, place)
            place, view = place + written, view[written:]

    def _recall(self) -> set[int]:
        """Starts of the ranges that are there; none where they were cut otherwise."""
        try:
            lines = self._journal_path.read_text().split("\n")
        except (OSError, ValueError):
            return set()
        whole = lines[:-1]  # a line without its end is half a line
        if not whole or whole[0] != self._head or not self._path.exists():
            return set()
        starts = {part.start for part in self._ranges}
        return {int(line) for line in whole[1:] if line.isdigit()} & starts


def journal_of(path: Path) -> Path:
    """The list of ranges that goes with a partial file."""
    return path.with_name(path.name + ".ranges")


def discard(path: Path) -> None:
    """Removes a partial file with its list."""
    journal_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
