"""What a router knows of a node's load, and what follows for a group."""

from __future__ import annotations

import pytest

from braid.worker.v1.worker_pb2 import NodeStatus
from services.router.group_load import expected_wait_s
from services.router.load import REPORT_LAG_S, NodeLoad


def load(**status: float) -> NodeLoad:
    """The load of a node that reported at 0 s; a step takes 10 ms."""
    it = NodeLoad()
    it.report(NodeStatus(step_seconds=0.01, **status), now=0.0)  # type: ignore[arg-type]
    return it


def test_node_is_full_with_one_call_more_than_slots() -> None:
    """A few calls more than slots are sent, so that none stands idle between two calls."""
    it = load(slots=4)
    tickets = [it.start(1, now=1.0) for _ in range(4)]
    assert not it.saturated
    tickets.append(it.start(1, now=1.0))
    assert it.saturated
    it.finish(tickets[0])
    assert not it.saturated


def test_calls_of_other_routers_count() -> None:
    """What a node reports beyond our own calls takes up its room too."""
    it = load(slots=4, running=4, queued=1)
    assert it.saturated
    it.report(NodeStatus(slots=4, running=2), now=0.1)
    assert not it.saturated


def test_own_calls_count_once() -> None:
    """A call that a report holds already is not counted beside it."""
    it = load(slots=4)
    for _ in range(4):
        it.start(1, now=1.0)
    it.report(NodeStatus(slots=4, running=4), now=1.0 + 2 * REPORT_LAG_S)
    assert not it.saturated


def test_place_that_is_promised_is_taken() -> None:
    """A place given to a call in line is not given twice."""
    it = load(slots=1, running=1)
    assert not it.saturated
    it.reserved += 1
    assert it.saturated


def test_node_without_slots_is_never_full() -> None:
    """A node that does not say how many calls it runs at once takes them all."""
    it = NodeLoad()
    for _ in range(1000):
        it.start(1, now=1.0)
    assert not it.saturated


@pytest.mark.parametrize(
    ("nodes", "ahead", "wait_s"),
    [
        (1, 0, 0.05),
        (1, 100, 0.30),
        (2, 0, 0.025),
        (2, 100, 0.15),
        (0, 100, 0),
    ],
)
def test_expected_wait(nodes: int, ahead: float, wait_s: float) -> None:
    """So many forwards as are in line, and what one call has left, at the pace of all slots."""
    loads = [load(slots=4, running=4, pending_forwards=80) for _ in range(nodes)]
    assert expected_wait_s(loads, ahead) == pytest.approx(wait_s)


def test_wait_is_corrected_by_what_calls_took() -> None:
    """Answers that take half of what they may halve the wait; one odd call hardly counts."""
    it = load(slots=4, running=4, pending_forwards=80)
    for index in range(200):
        ticket = it.start(10, now=float(index))
        it.learn(ticket, now=index + 0.05)
        it.finish(ticket)
    assert expected_wait_s([it], 100) == pytest.approx(0.15, rel=0.05)
    it.learn(it.start(10, now=500.0), now=9999.0)
    assert it.part_used < 0.6


def test_work_waiting_on_the_nodes_counts() -> None:
    """Calls that queue on the node come before those that queue here."""
    busy = load(slots=4, running=4, queued=4, pending_forwards=160)
    assert expected_wait_s([busy], 0) == pytest.approx((80 + 20) * 0.01 / 4)
