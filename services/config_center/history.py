"""The list of changes in etcd.

A revision is known only once it is written. So the record of a change goes, in the
transaction of the change itself, under a name of its own in PENDING, and is then moved to
its revision's key: by the writer, or, if that is killed, by whichever config center sees it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from uuid import uuid4

from braid.config.v1 import config_pb2
from services.chassis import documents, keys
from services.chassis.entries import Entry, Listing, Pulse
from services.chassis.registry import Registry
from services.chassis.transaction import Delete, Put, Unchanged
from services.config_center.rendering import render_message

KEPT = 1000
"""Changes that are kept; every router holds a copy of the keys."""

PENDING = keys.CHANGES + "pending/"
_DELETES = 100


def pending(record: config_pb2.Change) -> Put:
    """The part of a change's own transaction that records it."""
    return Put(PENDING + uuid4().hex, render_message(record))


def is_pending(key: str) -> bool:
    """Whether ``key`` holds a record that has not got its revision yet."""
    return key.startswith(PENDING)


def revision_of(key: str) -> int:
    """The revision that a record's key names; 0 where it is no such key."""
    name = key.removeprefix(keys.CHANGES)
    return int(name) if name.isascii() and name.isdigit() else 0


def records(entries: Iterable[Entry]) -> list[config_pb2.Change]:
    """The changes in ``entries`` by revision, pending ones among them."""
    found = (_record(entry) for entry in entries if entry.key.startswith(keys.CHANGES))
    return sorted(filter(None, found), key=lambda record: record.revision)


def _record(entry: Entry) -> config_pb2.Change | None:
    revision = entry.mod_revision if is_pending(entry.key) else revision_of(entry.key)
    try:
        record = documents.parse(entry.key, entry.value, config_pb2.Change)
    except ValueError:
        return None
    record.revision = revision
    return record if revision else None


def surplus(entries: Mapping[str, Entry], kept: int = KEPT) -> list[str]:
    """Keys of the oldest records beyond ``kept``."""
    known = sorted(key for key in entries if revision_of(key))
    return known[: max(len(known) - kept, 0)]


class History:
    """Records changes under their revisions, each once, and reads them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def settle(self, key: str) -> None:
        """Moves a pending record to its revision's key, unless somebody did."""
        entry = await self._registry.get(key)
        if entry is None:
            return
        record = _record(entry)
        if record is None:
            await self._registry.delete(key)
            return
        final = keys.change_key(record.revision)
        await self._registry.transact(
            (Unchanged(key, entry.mod_revision), Unchanged(final, 0)),
            (Put(final, render_message(record)), Delete(key)),
        )

    async def record(self, revision: int, record: config_pb2.Change) -> bool:
        """Records a change that was made without us; False where somebody did already."""
        record.revision = revision
        key = keys.change_key(revision)
        put = Put(key, render_message(record))
        return (await self._registry.transact((Unchanged(key, 0),), (put,))).succeeded

    async def trim(self, entries: Mapping[str, Entry]) -> None:
        """Removes the oldest records beyond the bound."""
        if old := surplus(entries)[:_DELETES]:
            await self._registry.transact((), [Delete(key) for key in old])

    async def list(
        self, after_revision: int, limit: int, key_prefix: str
    ) -> config_pb2.ListChangesResponse:
        """The newest ``limit`` changes after a revision, oldest first."""
        listing = await self._registry.list(keys.CHANGES)
        found = [
            record
            for record in records(listing.entries.values())
            if record.revision > after_revision
            and any(part.key.startswith(key_prefix) for part in record.keys)
        ]
        return config_pb2.ListChangesResponse(changes=found[-limit:], revision=listing.revision)

    async def watch(self, after_revision: int) -> AsyncIterator[config_pb2.Change]:
        """The changes after a revision and then each new one, once, in order."""
        seen = after_revision
        async with aclosing(self._registry.follow(keys.CHANGES)) as news:
            async for item in news:
                if isinstance(item, Pulse):
                    continue
                entries = item.entries.values() if isinstance(item, Listing) else item.put
                for record in records(it for it in entries if not is_pending(it.key)):
                    if record.revision > seen:
                        seen = record.revision
                        yield record
