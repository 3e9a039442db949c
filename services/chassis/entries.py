"""What the registry holds, and the news of it, free of etcd's own messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One key as stored; ``lease`` is 0 where none will remove it."""

    key: str
    value: bytes
    mod_revision: int
    lease: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """All keys under a prefix at one revision of one cluster."""

    revision: int
    entries: Mapping[str, Entry]
    cluster_id: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything that one revision changed: to be applied whole or not at all."""

    revision: int
    put: tuple[Entry, ...] = ()
    deleted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pulse:
    """The registry answered and has nothing new."""


News = Listing | Batch | Pulse


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """A lease's remaining and granted life in whole seconds; 0 and less: it is gone."""

    left_s: int
    granted_s: int
