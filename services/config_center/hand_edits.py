"""Notices edits of the keys themselves and records them like any other change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import structlog
from prometheus_client import CollectorRegistry, Counter

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.backoff import Backoff
from services.chassis.entries import Entry
from services.chassis.errors import ServiceError
from services.chassis.mirror import Mirror
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.registry import Registry
from services.config_center.change import BY_HAND, Author, change, is_audited, key_change
from services.config_center.history import History, is_pending, revision_of
from services.config_center.value_rules import fault_of

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Edit:
    """What one revision changed without a record of its own."""

    revision: int
    put: tuple[Entry, ...]
    deleted: tuple[str, ...] = ()


def edits_in(state: MirrorState, changes: Changes) -> list[Edit]:
    """The edits by hand among ``changes``.

    Whatever a config center writes has its record in the same revision. After an
    interruption, what has none and is newer than the oldest record is an edit; keys
    that were deleted meanwhile are not known by revision and cannot be told.
    """
    put = [entry for entry in changes.put if is_audited(entry.key)]
    if not changes.relisted:
        deleted = tuple(key for key in changes.deleted if is_audited(key))
        recorded = any(is_pending(entry.key) for entry in changes.put)
        return (
            [] if recorded or not (put or deleted) else [Edit(state.revision, tuple(put), deleted)]
        )
    known = _recorded(state.entries)
    oldest = min(known, default=0)
    put.sort(key=lambda entry: entry.mod_revision)
    return [
        Edit(revision, tuple(entries))
        for revision, entries in groupby(put, key=lambda entry: entry.mod_revision)
        if revision > oldest and revision not in known
    ]


def _recorded(entries: Mapping[str, Entry]) -> set[int]:
    pending = {entry.mod_revision for key, entry in entries.items() if is_pending(key)}
    return pending | {revision_of(key) for key in entries if revision_of(key)}


def record_of(edit: Edit, previous: Mapping[str, Entry]) -> config_pb2.Change:
    """The edit's record, with the reason of each value that nobody takes."""
    before = {key: entry.value for key, entry in previous.items()}
    changed = [
        key_change(it.key, before.get(it.key), it.value, fault_of(it.key, it.value))
        for it in edit.put
    ]
    changed += [key_change(key, before.get(key), None) for key in edit.deleted]
    return change(Author(BY_HAND), changed)


class HandEdits:
    """Follows the keys; several config centers may, and each edit is recorded once."""

    def __init__(self, registry: Registry, metrics: CollectorRegistry) -> None:
        self._mirror = Mirror(registry, keys.ROOT)
        self._history = History(registry)
        self._news: asyncio.Queue[tuple[MirrorState, Changes]] = asyncio.Queue()
        self._mirror.subscribe(lambda state, changes: self._news.put_nowait((state, changes)))
        self._edits = Counter(
            "braid_config_hand_edits_total",
            "Edits of keys in etcd, made past the config center, by what became of them.",
            ("outcome",),
            registry=metrics,
        )

    async def run(self) -> None:
        """Follows for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mirror.run())
            while True:
                await self._take(*await self._news.get())

    async def _take(self, state: MirrorState, changes: Changes) -> None:
        """Tries until etcd takes it: what was seen once is not seen again."""
        backoff = Backoff()
        while True:
            try:
                await self._settle(changes)
                for edit in edits_in(state, changes):
                    await self._record(edit, changes.previous)
                if any(revision_of(entry.key) for entry in changes.put):
                    await self._history.trim(state.entries)
            except ServiceError as error:
                log.warning("hand_edits_not_recorded", reason=error.message)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def _settle(self, changes: Changes) -> None:
        for entry in changes.put:
            if is_pending(entry.key):
                await self._history.settle(entry.key)

    async def _record(self, edit: Edit, previous: Mapping[str, Entry]) -> None:
        record = record_of(edit, previous)
        if not await self._history.record(edit.revision, record):
            return
        for part in record.keys:
            outcome = "rejected" if part.rejected else "taken"
            self._edits.labels(outcome).inc()
            log.log(
                30 if part.rejected else 20,
                "hand_edit",
                key=part.key,
                revision=edit.revision,
                outcome=outcome,
                reason=part.rejected,
            )
