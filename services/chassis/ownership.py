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


def claim(entry: Entry | None, lease: int, mine: Set[int], rivals: Set[int]) -> Claim:
    """Decides for a process that registered before.

    ``mine`` are all leases it ever had, ``rivals`` the foreign ones from which it
    took the key back once already. A rival that put its own record again is alive:
    two processes have one id, and the later one keeps it, for else they would take
    turns for ever.
    """
    if entry is None:
        return Claim.TAKE
    if entry.lease == lease:
        return Claim.HELD
    contested = entry.lease in rivals and entry.lease not in mine
    return Claim.LEAVE if contested else Claim.TAKE


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
