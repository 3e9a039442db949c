"""Asks a store again for a while, where that may help."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import structlog

from services.chassis.backoff import Backoff
from services.chassis.file_store import StoreError
from services.generation.weights.faults import (
    FetchStopped,
    WeightsUnavailable,
    WrongLength,
    words_of,
)

T = TypeVar("T")

log = structlog.get_logger()


class Retries:
    """Up to ``attempts`` with growing waits; ended by ``stopped``."""

    def __init__(self, attempts: int, stopped: threading.Event) -> None:
        self._attempts = attempts
        self._stopped = stopped

    def run(self, path: str, ask: Callable[[], T]) -> T:
        """What ``ask`` returns at last.

        Raises WeightsUnavailable naming the file, WrongLength as ``ask`` last raised
        it, or FetchStopped.
        """
        waits = Backoff()
        for attempt in range(1, self._attempts + 1):
            try:
                return ask()
            except StoreError as error:
                raise WeightsUnavailable(str(error)) from None
            except FileNotFoundError:
                raise WeightsUnavailable(f"{path}: no such file in the store") from None
            except PermissionError:
                raise WeightsUnavailable(f"{path}: the store denies access to it") from None
            except Exception as error:  # every store has faults of its own
                log.warning(
                    "weights_read_failed", file=path, attempt=attempt, fault=words_of(error)
                )
                if attempt == self._attempts:
                    raise _last(path, error) from None
            if self._stopped.wait(waits.next()):
                break
        raise FetchStopped("stopped while it fetched weights")


def _last(path: str, error: Exception) -> Exception:
    return (
        error
        if isinstance(error, WrongLength)
        else WeightsUnavailable(f"{path}: {words_of(error)}")
    )
