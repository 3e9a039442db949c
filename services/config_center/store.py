"""Typed values in etcd, written by compare-and-swap, each write with its record."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from services.chassis.entries import Entry
from services.chassis.errors import (
    AlreadyExists,
    LimitExceeded,
    RevisionConflict,
    ServiceError,
    StoredValueInvalid,
)
from services.chassis.registry import Registry
from services.chassis.transaction import Delete, Operation, Put, Unchanged
from services.config_center import history
from services.config_center.change import UNNAMED, Author, change, key_change, shown
from services.config_center.history import History

M = TypeVar("M")

ABSENT = 0
"""Revision of a key that is not stored."""

MAX_VALUE_BYTES = 1024 * 1024
"""Largest value, and all values of one change; etcd refuses requests over 1.5 MiB."""

MAX_KEYS = 60
"""Keys of one change; etcd refuses more than 128 operations, conditions counted apart."""

_TRIES = 5
_TOLD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Document(Generic[M]):
    """How one kind of value is spelled in etcd."""

    parse: Callable[[str, bytes], M]
    render: Callable[[M], bytes]


@dataclass(frozen=True, slots=True)
class Stored(Generic[M]):
    """A value and the revision it was written at."""

    value: M
    revision: int


@dataclass(frozen=True, slots=True)
class Write:
    """One key of a change: its new value, None to delete it.

    ``expected`` is the revision that the writer saw; None: whatever there is.
    """

    key: str
    value: bytes | None
    expected: int | None = None


def write(key: str, document: Document[M], value: M, expected: int | None = None) -> Write:
    """A typed value's write."""
    return Write(key, document.render(value), expected)


class Store:
    """Reads and writes documents; every write is one transaction."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._history = History(registry)

    async def read(self, key: str, document: Document[M]) -> Stored[M] | None:
        """The stored value, None where there is none.

        Raises StoredValueInvalid where a hand edit left something that does not
        parse.
        """
        entry = await self._registry.get(key)
        if entry is None:
            return None
        try:
            return Stored(document.parse(key, entry.value), entry.mod_revision)
        except ValueError as error:
            raise StoredValueInvalid(f"{key} at revision {entry.mod_revision}: {error}") from None

    async def list(self, prefix: str, document: Document[M]) -> tuple[list[M], int]:
        """All values below ``prefix`` that parse, in order of key, and the revision read."""
        found, revision = await self.list_stored(prefix, document)
        return [stored.value for stored in found], revision

    async def list_stored(
        self, prefix: str, document: Document[M]
    ) -> tuple[builtins.list[Stored[M]], int]:
        """Likewise, each value with the revision it was written at."""
        listing = await self._registry.list(prefix)
        found = []
        for key, entry in sorted(listing.entries.items()):
            try:
                found.append(Stored(document.parse(key, entry.value), entry.mod_revision))
            except ValueError:
                continue
        return found, listing.revision

    async def replace(
        self,
        key: str,
        document: Document[M],
        value: M,
        expected_revision: int | None,
        author: Author = UNNAMED,
    ) -> int:
        """Writes ``value`` and returns its revision.

        Raises RevisionConflict where the key is not at ``expected_revision``
        (ABSENT: must not exist; None: whatever there is is replaced), and
        LimitExceeded where the value is too large.
        """
        return await self.commit([write(key, document, value, expected_revision)], author)

    async def create(
        self,
        key: str,
        document: Document[M],
        value: M,
        author: Author = UNNAMED,
        unchanged: Sequence[Unchanged] = (),
    ) -> int:
        """Writes ``value`` where nothing is stored; raises AlreadyExists or LimitExceeded."""
        try:
            return await self.commit([write(key, document, value, ABSENT)], author, unchanged)
        except RevisionConflict:
            raise AlreadyExists(f"{key} is recorded already and cannot be changed") from None

    async def delete(
        self,
        key: str,
        author: Author = UNNAMED,
    ) -> int | None:
        """Removes the value and returns the revision after that; None where there was none."""
        entry = await self._registry.get(key)
        if entry is None:
            return None
        return await self.commit([Write(key, None)], author)

    async def commit(
        self,
        writes: Sequence[Write],
        author: Author,
        unchanged: Sequence[Unchanged] = (),
    ) -> int:
        """Makes all writes and their record under one revision, which it returns, or none.

        Raises RevisionConflict where a key, or one of ``unchanged``, is not at the revision
        expected.
        """
        _check_size(writes)
        for _ in range(_TRIES):
            present = {it.key: await self._registry.get(it.key) for it in writes}
            _check_expected(writes, present)
            seen = [Unchanged(it.key, _revision(present[it.key])) for it in writes]
            record = change(author, [_key_change(it, present[it.key]) for it in writes])
            put = history.pending(record)
            operations = [*map(_operation, writes), put]
            result = await self._registry.transact([*seen, *unchanged], operations)
            if result.succeeded:
                await self._settle(put.key)
                return result.revision
            await self._check_unchanged(unchanged)
        raise RevisionConflict(f"{writes[0].key} keeps changing; try again")

    async def conflict(self, key: str) -> RevisionConflict:
        """What a writer is told whose revision of ``key`` is not the present one."""
        return _conflict(key, await self._registry.get(key))

    async def _settle(self, key: str) -> None:
        """The change is made: where this fails, a config center's watch does it."""
        with suppress(ServiceError):
            await self._history.settle(key)

    async def _check_unchanged(self, unchanged: Sequence[Unchanged]) -> None:
        for condition in unchanged:
            entry = await self._registry.get(condition.key)
            if _revision(entry) != condition.mod_revision:
                raise _conflict(condition.key, entry)


def _check_expected(writes: Sequence[Write], present: Mapping[str, Entry | None]) -> None:
    for it in writes:
        if it.expected is not None and it.expected != _revision(present[it.key]):
            raise _conflict(it.key, present[it.key])


def _conflict(key: str, entry: Entry | None) -> RevisionConflict:
    revision = _revision(entry)
    value = shown(key, entry.value if entry else None)
    return RevisionConflict(
        f"{key} is at revision {revision}; read it again",
        metadata={
            "key": key,
            "revision": str(revision),
            "value": value.encode()[:_TOLD_BYTES].decode(errors="ignore"),
        },
    )


def _check_size(writes: Sequence[Write]) -> None:
    if len(writes) > MAX_KEYS:
        raise LimitExceeded(f"{len(writes)} keys, {MAX_KEYS} are the limit of one change")
    size = sum(len(it.value or b"") for it in writes)
    if size > MAX_VALUE_BYTES:
        raise LimitExceeded(
            f"{writes[0].key}: {size} bytes, {MAX_VALUE_BYTES} are the limit of one change"
        )


def _revision(entry: Entry | None) -> int:
    return entry.mod_revision if entry else ABSENT


def _operation(it: Write) -> Operation:
    return Delete(it.key) if it.value is None else Put(it.key, it.value)


def _key_change(it: Write, present: Entry | None) -> Any:
    return key_change(it.key, present.value if present else None, it.value)
