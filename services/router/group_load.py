"""How much work a group has, and how long a call would wait for it; pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from services.router.load import NodeLoad


def expected_wait_s(loads: Iterable[NodeLoad], ahead: float) -> float:
    """Seconds until a call that finds every node full is given a place on one.

    Places come free as fast as the nodes together get through forward passes: so
    many as wait there and in line (``ahead``), and then what one call has left. All of
    it is counted at its longest and corrected by what calls of late really took.
    """
    rate = waiting = each = used = 0.0
    nodes = 0
    for load in loads:
        nodes += 1
        rate += load.forwards_per_second
        waiting += load.waiting_forwards
        each += load.forwards_per_call
        used += load.part_used
    return (waiting + ahead + each / nodes) / rate * used / nodes if nodes else 0.0


def pending_forwards(loads: Iterable[NodeLoad]) -> float:
    """Steps x concurrency: forward passes that the calls on these nodes still need."""
    return sum(load.pending_forwards for load in loads)
