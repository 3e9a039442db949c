"""Whether a process holds its key, may take it, or has to leave it; pure functions."""

from __future__ import annotations

import enum
from collections.abc import Set
from dataclasses import dataclass

from services.chassis.entries import Entry, TimeToLive

_MARGIN_S = 3.0
"""A lease's life comes in whole seconds, and etcd removes it a moment after its end."""


class Claim(enum.Enum):
    """What to do about the key now."""

    HELD = "held"
    TAKE = "take"
    LEAVE = "leave"


def claim(entry: Entry | None, lease: int, ours: Set[int], rivals: Set[int]) -> Claim:
    """Decides for a process that registered before and now holds ``lease``.

    ``ours`` are all leases it ever had. A record under none of them, and under no
    lease at all, was written by hand and is taken back. One under a foreign lease is
    left alone if that is among the ``rivals``: those that came by the key while it was
    free, or from which it was taken back once already. Their owners are alive, and
    two processes with one id must not take turns for ever.
    """
    if entry is None:
        return Claim.TAKE
    if entry.lease == lease:
        return Claim.HELD
    return Claim.LEAVE if entry.lease in rivals - ours else Claim.TAKE


@dataclass(frozen=True, slots=True)
class Occupant:
    """A foreign lease that a starting process finds on its key."""

    lease: int
    left_s: int
    dead_by: float
    """time.monotonic() at which etcd has removed it unless its owner renews it."""


def sight(lease: int, life: TimeToLive, now: float) -> Occupant:
    """The occupant as first seen."""
    return Occupant(lease, life.left_s, now + life.left_s + _MARGIN_S)


def is_alive(seen: Occupant, lease: int, life: TimeToLive, now: float) -> bool:
    """Whether the occupant was renewed or replaced since it was ``seen``."""
    return lease != seen.lease or life.left_s > seen.left_s or now > seen.dead_by
