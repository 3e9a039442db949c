"""Content on disk, each file called by its sha256; shared by the workers of a host."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
from filelock import FileLock, Timeout

from services.generation.weights.faults import FetchStopped
from services.generation.weights.partial import discard

LEFT_BEHIND_S = 7 * 24 * 3600.0
"""Age from which what a broken-off fetch left, or what was set aside, is removed."""
_IN_USE_S = 3600.0
"""Content that was asked for this recently is not given up for the bound."""

log = structlog.get_logger()


class Blobs:
    """``sha256/{digest}`` is whole, always; ``.part`` is on its way, ``.bad`` was set aside.

    Only who holds a digest's lock writes any of the three.
    """

    def __init__(self, folder: Path) -> None:
        self._blobs = folder / "sha256"
        self._locks = folder / "locks"

    def prepare(self) -> None:
        """Makes the folders. Raises OSError."""
        self._blobs.mkdir(parents=True, exist_ok=True)
        self._locks.mkdir(parents=True, exist_ok=True)

    def place(self, digest: str) -> Path:
        """Where the content is, or would be."""
        return self._blobs / digest

    def partial(self, digest: str) -> Path:
        """Where it is while it comes."""
        return self._blobs / f"{digest}.part"

    def holds(self, digest: str, size: int) -> bool:
        """Whether the content is there; it counts as used by the asking."""
        place = self.place(digest)
        try:
            found = place.stat().st_size == size
        except OSError:
            return False
        if found:
            with suppress(OSError):  # another user's file cannot be touched, and is no worse
                os.utime(place)
        return found

    @contextmanager
    def locked(self, digest: str, given_up: Callable[[], bool]) -> Iterator[None]:
        """One process of this host at a time. Raises FetchStopped where the wait is given up."""
        lock = FileLock(self._locks / digest)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.info("weights_waiting", sha256=digest, reason="another worker fetches this file")
            try:
                lock.acquire(cancel_check=given_up)
            except Timeout:
                raise FetchStopped("stopped while another worker fetched its weights") from None
        try:
            yield
        finally:
            lock.release()

    def accept(self, digest: str) -> None:
        """The partial file is whole and right: it becomes the content, in one step."""
        partial = self.partial(digest)
        partial.chmod(0o444)
        partial.replace(self.place(digest))
        _sync(self._blobs)
        discard(partial)

    def set_aside(self, digest: str, wrong: Path) -> Path:
        """Moves what is not the content out of the way; returns where to look at it."""
        aside = self._blobs / f"{digest}.bad"
        wrong.replace(aside)
        discard(self.partial(digest))
        return aside

    def sweep(self) -> None:
        """Removes what nobody came back for."""
        for path in self._entries():
            if path.suffix and _age_s(path) > LEFT_BEHIND_S:
                self._remove(path)

    def bound(self, max_bytes: int) -> None:
        """Removes the least recently used content until at most ``max_bytes`` are left.

        A worker that has loaded a file needs it no more; one that is about to
        has asked for it within the last hour.
        """
        whole = sorted((path for path in self._entries() if not path.suffix), key=_age_s)
        sizes = [(path, _size(path)) for path in whole]
        excess = sum(size for _, size in sizes) - max_bytes
        while excess > 0 and sizes:
            path, size = sizes.pop()
            if _age_s(path) > _IN_USE_S and self._remove(path):
                log.info("weights_evicted", sha256=path.name, bytes=size)
                excess -= size

    def _entries(self) -> list[Path]:
        return list(self._blobs.iterdir())

    def _remove(self, path: Path) -> bool:
        """Unless somebody is at it."""
        lock = FileLock(self._locks / path.name.partition(".")[0])
        with suppress(Timeout, OSError), lock.acquire(timeout=0):
            path.unlink(missing_ok=True)
            return True
        return False


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sync(folder: Path) -> None:
    """Makes a rename last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
