"""Nodes that serve the same version, to draw one from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from random import Random

from services.router.node import TableNode

NOBODY: frozenset[str] = frozenset()


class Pool:
    """Nodes that take calls, each of weight 1 or more. Immutable."""

    __slots__ = ("_all_can", "_cumulative", "_some_can", "half_open", "nodes", "weight")

    def __init__(self, nodes: Iterable[TableNode]) -> None:
        self.nodes = tuple(nodes)
        self._cumulative = tuple(accumulate(node.weight for node in self.nodes))
        self.weight = self._cumulative[-1] if self.nodes else 0
        self.half_open = any(not node.trusted for node in self.nodes)
        """Whether one of them takes one call at a time."""
        abilities = {node.abilities for node in self.nodes}
        self._all_can = frozenset.intersection(*abilities) if abilities else frozenset()
        self._some_can = frozenset().union(*abilities)

    def able(self, needs: frozenset[str], avoid: frozenset[str] = NOBODY) -> Pool:
        """The part of it that has every capability in ``needs`` and no key in ``avoid``.

        A half-open node whose one call is under way is left out as well.
        """
        if not avoid and not self.half_open and needs <= self._all_can:
            return self
        if not needs <= self._some_can:
            return EMPTY
        return Pool(
            node
            for node in self.nodes
            if needs <= node.abilities and node.key not in avoid and not node.health.probed
        )

    def with_room(self) -> Pool:
        """The part of it where a call would run at once."""
        return Pool(node for node in self.nodes if not node.load.saturated)

    def draw(self, rng: Random) -> TableNode:
        """Best of two: both drawn by weight, the second taken only where it waits less.

        Less is meant absolutely and for its weight, so that idle nodes share by
        weight alone and a light node is not overrun while a heavy one works.
        The pool must not be empty.
        """
        first = self._at(rng.random() * self.weight)
        if len(self.nodes) == 1:
            return self.nodes[first]
        one, other = self.nodes[first], self.nodes[self._another(first, rng)]
        waits, waits_less = one.load.drain_seconds, other.load.drain_seconds
        if waits_less < waits and waits_less * one.weight < waits * other.weight:
            return other
        return one

    def _at(self, point: float) -> int:
        return min(bisect_right(self._cumulative, point), len(self.nodes) - 1)

    def _another(self, first: int, rng: Random) -> int:
        own = self.nodes[first].weight
        point = rng.random() * (self.weight - own)
        if point >= self._cumulative[first] - own:
            point += own
        index = self._at(point)
        return index if index != first else (first + 1) % len(self.nodes)


EMPTY = Pool(())
