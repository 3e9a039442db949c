"""Files that are not what their record says: told to operators, every time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from braid.config.v1.config_pb2 import ModelFile
from services.generation.weights.manifest import digest_of

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What was found in place of a file."""

    file: ModelFile
    found: str
    """sha256 of what is there; empty where nothing could be read."""
    detail: str = ""

    def __str__(self) -> str:
        digests = f"sha256 {self.found or 'none'}, recorded {digest_of(self.file)}"
        return f"{self.file.path}: {digests}" + (f" ({self.detail})" if self.detail else "")


class Mismatches:
    """Logs and counts them; ``count`` is called for each."""

    def __init__(self, count: Callable[[], None]) -> None:
        self._count = count

    def report(self, version: str, wrong: Mismatch, aside: Path | None) -> None:
        """One file was found to be wrong, and is where ``aside`` says now."""
        log.error(
            "weights_mismatch",
            alert=True,
            version=version,
            file=wrong.file.path,
            sha256=wrong.found,
            recorded_sha256=digest_of(wrong.file),
            detail=wrong.detail,
            set_aside=str(aside) if aside else "",
        )
        self._count()
