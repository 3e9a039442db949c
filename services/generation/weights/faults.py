"""Why a version's files cannot be had."""

from __future__ import annotations

from services.chassis.process import StartFailure

EXIT_MISMATCH = 3


class WeightsUnavailable(StartFailure):
    """The files cannot be had: no record, no store, no file, no room."""


class WeightsMismatch(StartFailure):
    """Files are there and are not what the record says."""

    def __init__(self, message: str) -> None:
        super().__init__(message, EXIT_MISMATCH)


class FetchStopped(StartFailure):
    """The process is about to end and fetches no further."""


class WrongLength(Exception):
    """A store answers a range with more or fewer bytes than were asked for."""

    def __init__(self, wanted: int, data: bytes) -> None:
        super().__init__(f"{len(data)} bytes came for a range of {wanted}")
        self.data = data


def words_of(error: Exception) -> str:
    """What went wrong, in one line."""
    text = getattr(error, "strerror", None) or " ".join(str(error).split())
    return text[:300] or type(error).__name__
