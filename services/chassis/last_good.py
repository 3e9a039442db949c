"""The last good value of each key, whatever is written over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from services.chassis.documents import DocumentError
from services.chassis.entries import Entry
from services.chassis.errors import ServiceError
from services.chassis.mirror_state import Changes

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A value that was not taken."""

    key: str
    revision: int
    reason: str


class LastGood(Generic[T]):
    """Parsed values under ``prefix`` (one key, or a folder if it ends in a slash).

    ``parse`` takes a key and its value, and refuses by ValueError or ServiceError.
    A refused value leaves the former one in force and gives one warning; deleting
    the key removes both.
    """

    def __init__(self, prefix: str, parse: Callable[[str, bytes], T]) -> None:
        self._prefix = prefix
        self._parse = parse
        self._values: dict[str, T] = {}
        self._rejected: dict[str, Rejected] = {}

    @property
    def values(self) -> Mapping[str, T]:
        """Values in force by key; a copy."""
        return dict(self._values)

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Values not taken, by key."""
        return tuple(self._rejected[key] for key in sorted(self._rejected))

    def update(self, changes: Changes) -> bool:
        """Takes what changed under the prefix; whether anything did."""
        put = [entry for entry in changes.put if self._covers(entry.key)]
        deleted = [key for key in changes.deleted if self._covers(key)]
        for entry in put:
            self._put(entry)
        for key in deleted:
            self._values.pop(key, None)
            self._rejected.pop(key, None)
        return bool(put or deleted)

    def _put(self, entry: Entry) -> None:
        try:
            self._values[entry.key] = self._parse(entry.key, entry.value)
        except (ValueError, ServiceError) as error:
            self._reject(entry, _reason(error))
        else:
            if self._rejected.pop(entry.key, None):
                log.info("value_accepted", key=entry.key, revision=entry.mod_revision)

    def _reject(self, entry: Entry, reason: str) -> None:
        rejected = Rejected(entry.key, entry.mod_revision, reason)
        if self._rejected.get(entry.key) != rejected:
            log.warning("value_rejected", key=entry.key, revision=entry.mod_revision, reason=reason)
        self._rejected[entry.key] = rejected

    def _covers(self, key: str) -> bool:
        return key == self._prefix or (self._prefix.endswith("/") and key.startswith(self._prefix))


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, DocumentError) else str(error)
