"""What a mirror shows, and how news turns one state into the next; pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

from services.chassis.entries import Batch, Entry, Listing


def _nothing() -> Mapping[str, Entry]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MirrorState:
    """All keys under the prefix at one revision. Times are those of time.monotonic()."""

    revision: int = 0
    entries: Mapping[str, Entry] = field(default_factory=_nothing)
    fresh_at: float = -inf
    """When etcd last answered; everything up to then is in ``entries``."""
    listed_at: float = -inf
    """When the list was last read whole: at the start and after every interruption."""
    connected: bool = False
    """Whether news arrive now; if not, this is the last known state."""
    from_disk: bool = False
    """Whether etcd has not answered since the process started."""
    cluster_id: int = 0

    def age_s(self, now: float) -> float:
        """Seconds since etcd last answered; infinite if it never did."""
        return now - self.fresh_at


@dataclass(frozen=True, slots=True)
class Changes:
    """What one revision, or one reading of the whole list, changed.

    ``previous`` holds the former entry of each key put or deleted that had one:
    a reader that doubts a mass deletion can keep what it still sees alive.
    """

    put: tuple[Entry, ...] = ()
    deleted: tuple[str, ...] = ()
    previous: Mapping[str, Entry] = field(default_factory=_nothing)
    relisted: bool = False
    """After an interruption: what happened in between is seen as one change."""

    def __bool__(self) -> bool:
        return bool(self.put or self.deleted)


def relist(state: MirrorState, listing: Listing, now: float) -> tuple[MirrorState, Changes]:
    """Takes the list as the truth, whatever its revision: history may have been replaced."""
    old, new = state.entries, listing.entries
    put = tuple(entry for key, entry in new.items() if old.get(key) != entry)
    deleted = tuple(key for key in old if key not in new)
    following = MirrorState(
        revision=listing.revision,
        entries=MappingProxyType(dict(new)),
        fresh_at=now,
        listed_at=now,
        connected=True,
        cluster_id=listing.cluster_id,
    )
    return following, _changes(old, put, deleted, relisted=True)


def booted(listing: Listing) -> tuple[MirrorState, Changes]:
    """Starts from what was saved, of unknown age, until etcd answers."""
    state = MirrorState(
        revision=listing.revision,
        entries=MappingProxyType(dict(listing.entries)),
        from_disk=True,
        cluster_id=listing.cluster_id,
    )
    return state, Changes(put=tuple(listing.entries.values()), relisted=True)


def advance(state: MirrorState, batch: Batch, now: float) -> tuple[MirrorState, Changes]:
    """Applies one revision whole; one that was applied before changes nothing."""
    if batch.revision <= state.revision:
        return pulse(state, now), Changes()
    deleted = tuple(key for key in batch.deleted if key in state.entries)
    entries = {key: entry for key, entry in state.entries.items() if key not in batch.deleted}
    entries |= {entry.key: entry for entry in batch.put}
    following = replace(
        pulse(state, now), revision=batch.revision, entries=MappingProxyType(entries)
    )
    return following, _changes(state.entries, batch.put, deleted, relisted=False)


def pulse(state: MirrorState, now: float) -> MirrorState:
    """Etcd answered: the state is as fresh as now."""
    return replace(state, fresh_at=now, connected=True)


def interrupted(state: MirrorState) -> MirrorState:
    """News have stopped: the state stays, and says that it may be old."""
    return replace(state, connected=False)


def history_changed(state: MirrorState, listing: Listing) -> bool:
    """Whether etcd was wiped, restored or exchanged since ``state`` was read from it."""
    if state.revision == 0:
        return False
    exchanged = state.cluster_id != listing.cluster_id and state.cluster_id != 0
    return exchanged or listing.revision < state.revision


def _changes(
    old: Mapping[str, Entry], put: tuple[Entry, ...], deleted: tuple[str, ...], *, relisted: bool
) -> Changes:
    touched = (*(entry.key for entry in put), *deleted)
    previous = {key: old[key] for key in touched if key in old}
    return Changes(put, deleted, previous, relisted)
