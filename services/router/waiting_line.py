"""Calls that wait for a node of one group: bounded, by class, the nearest deadline first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Turn(Generic[T]):
    """One call's place in line, and what it asks of whoever takes it."""

    priority: int
    """Class; the smaller goes first."""
    ends_at: float
    """When the call is of no use any more."""
    number: int
    """Later turns have higher ones."""
    rule: str
    forwards: float
    item: T

    @property
    def order(self) -> tuple[int, float, float]:
        """What the line is sorted by."""
        return self.priority, self.ends_at, self.number


class LineFull(Exception):
    """The line, or a rule's share of it, takes no more."""


class WaitingLine(Generic[T]):
    """At most ``length`` turns in order."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._turns: list[Turn[T]] = []
        self._by_rule: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[Turn[T]]:
        return iter(tuple(self._turns))

    def put(self, turn: Turn[T], share: float = 1.0) -> Turn[T] | None:
        """Lets ``turn`` in, its rule holding at most ``share`` of the line.

        Where the line is full, the last turn makes room if it is of a lower class,
        and is returned. Raises LineFull.
        """
        last = self._displaced_by(turn)
        held = self._by_rule[turn.rule] - (last is not None and last.rule == turn.rule)
        if held >= max(1, int(share * self._length)):
            raise LineFull
        if last is not None:
            self.remove(last)
        insort(self._turns, turn, key=_order)
        self._by_rule[turn.rule] += 1
        return last

    def _displaced_by(self, turn: Turn[T]) -> Turn[T] | None:
        if len(self._turns) < self._length:
            return None
        if not self._turns or self._turns[-1].priority <= turn.priority:
            raise LineFull
        return self._turns[-1]

    def remove(self, turn: Turn[T]) -> bool:
        """Takes a turn out; False where it has left already."""
        index = bisect_left(self._turns, turn.order, key=_order)
        if index == len(self._turns) or self._turns[index] is not turn:
            return False
        del self._turns[index]
        self._by_rule[turn.rule] -= 1
        return True

    def ahead_of(self, priority: int, ends_at: float) -> float:
        """Forward passes of the turns that a new one would wait for."""
        index = bisect_left(self._turns, (priority, ends_at, float("inf")), key=_order)
        return sum(turn.forwards for turn in self._turns[:index])


def _order(turn: Turn[T]) -> tuple[int, float, float]:
    return turn.order
