"""Who shares the next forward: pure choices by rows and by time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

PATIENCE = 4
"""Forwards in a row that may go by without a sequence; then it is computed before all others."""

Expect = Callable[[int, bool], float]
"""Seconds that a forward over so many rows takes: as a rule, or (True) hardly ever more."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one sequence asks of the next forward."""

    rows: int
    latest: float = math.inf
    """When that forward has to be over."""
    begun: bool = False
    """Whether it has something to answer with. Who has not may as well try its luck; who has
    would lose it."""
    passed_over: int = 0
    """Forwards that have gone by without it."""

    def fits(self, rows: int, now: float, expect: Expect) -> bool:
        """Whether a forward over ``rows`` rows that starts now is over in time for it."""
        return self.latest == math.inf or now + expect(rows, self.begun) <= self.latest


@dataclass(frozen=True, slots=True)
class Room:
    """What one forward holds."""

    sequences: int
    rows: int


def choose(claims: Sequence[Claim], room: Room, now: float, expect: Expect) -> list[int]:
    """Indices of those who share the next forward, ascending; each of them fits one of its own.

    Whoever comes first, as many as there is room for, as long as all have time to wait. Else
    the nearest end goes first, and nobody joins with whom the forward might end too late
    for one of those in it. There is always one.
    """
    usual = expect(min(room.rows, sum(claim.rows for claim in claims[: room.sequences])), True)
    urgent = [
        i for i, claim in enumerate(claims) if not claim.fits(claim.rows, now + usual, expect)
    ]
    first = [i for i, claim in enumerate(claims) if claim.passed_over >= PATIENCE]
    by_end = sorted(urgent, key=lambda i: claims[i].latest)
    order = dict.fromkeys([*first, *by_end, *range(len(claims))])
    return sorted(_fitting(claims, order, room, now, expect))


def lost(claims: Sequence[Claim], chosen: Sequence[int], now: float, expect: Expect) -> list[int]:
    """Indices of those left out who will have no time for a forward after this one."""
    over = now + expect(sum(claims[i].rows for i in chosen), True)
    return [
        i
        for i, claim in enumerate(claims)
        if i not in chosen and not claim.fits(claim.rows, over, expect)
    ]


def _fitting(
    claims: Sequence[Claim], order: Iterable[int], room: Room, now: float, expect: Expect
) -> list[int]:
    chosen: list[int] = []
    rows, nearest = 0, math.inf
    for i in order:
        if len(chosen) == room.sequences:
            break
        total = rows + claims[i].rows
        end = min(nearest, claims[i].latest)
        late = end < math.inf and now + expect(total, True) > end
        if chosen and (total > room.rows or late):
            continue
        chosen.append(i)
        rows, nearest = total, end
    return chosen
