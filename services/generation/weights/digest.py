"""sha256 of a file on disk."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from services.generation.weights.faults import FetchStopped

_CHUNK_BYTES = 4 * 2**20


def sha256_of(path: Path, stopped: threading.Event) -> str:
    """In lower case. Raises OSError, or FetchStopped soon after ``stopped`` was set."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            if stopped.is_set():
                raise FetchStopped("stopped while it verified weights")
            digest.update(chunk)
    return digest.hexdigest()
