"""The routing table: small changes, shared rest."""

from __future__ import annotations

import time

from braid.worker.v1 import worker_pb2
from services.router.load import NodeLoad
from tests.router.tables import node, table


def test_change_leaves_the_old_table_as_it_was() -> None:
    """A changed table is a new value; whoever holds the old one sees no change."""
    before = table(node("w1"))
    after = before.changed([node("w2")], ["/braid/nodes/diffusion/w1"])
    assert list(before.nodes) == ["/braid/nodes/diffusion/w1"]
    assert list(after.nodes) == ["/braid/nodes/diffusion/w2"]
    assert len(before.groups["diffusion"]["m"]["v1"].pool.nodes) == 1


def test_only_the_touched_variant_is_made_anew() -> None:
    """Pools of versions that a change does not touch are shared with the old table."""
    before = table(node("w1"), node("w2", version="v2"))
    after = before.changed([node("w3", version="v2")])
    models, changed = before.groups["diffusion"]["m"], after.groups["diffusion"]["m"]
    assert changed["v1"] is models["v1"]
    assert len(changed["v2"].pool.nodes) == 2


def test_node_that_changes_its_version_moves() -> None:
    """A node's new version takes it out of the old version's pool."""
    after = table(node("w1")).changed([node("w1", version="v2")])
    assert list(after.groups["diffusion"]["m"]) == ["v2"]


def test_last_node_takes_its_group_along() -> None:
    """Groups and models without any node are not kept."""
    after = table(node("w1")).changed(gone=["/braid/nodes/diffusion/w1", "/braid/nodes/g/never"])
    assert not after.groups
    assert not after.knows("m")


def test_pool_holds_only_nodes_that_take_calls() -> None:
    """Nodes of weight 0 and nodes with a reason are known, but not in the pool."""
    known = table(node("w1"), node("w2", weight=0), node("w3", reason="draining"))
    variant = known.groups["diffusion"]["m"]["v1"]
    assert len(variant.nodes) == 3
    assert [member.record.node_id for member in variant.pool.nodes] == ["w1"]


def test_one_change_among_thousands_is_quick() -> None:
    """One node's change in a table of 5,000 costs milliseconds, not a rebuild."""
    known = table(*(node(f"w{index}", version=f"v{index % 20}") for index in range(5000)))
    started = time.perf_counter()
    for index in range(10):
        known = known.changed([node(f"w{index}", version=f"v{index % 20}", weight=0)])
    assert (time.perf_counter() - started) / 10 < 0.02


def test_load_counts_own_calls_until_they_are_reported() -> None:
    """A call weighs on its node until a report made after its arrival holds it."""
    load = NodeLoad()
    load.report(worker_pb2.NodeStatus(step_seconds=0.5, slots=2), now=0.0)
    first = load.start(forwards=8, now=1.0)
    assert (load.drain_seconds, load.in_flight) == (2.0, 1)
    load.report(worker_pb2.NodeStatus(step_seconds=0.5, slots=2), now=1.001)
    assert load.drain_seconds == 2.0
    load.report(worker_pb2.NodeStatus(step_seconds=0.5, slots=2, pending_forwards=6), now=1.1)
    assert load.drain_seconds == 1.5
    load.finish(first)
    assert (load.drain_seconds, load.in_flight) == (1.5, 0)


def test_load_of_a_node_without_reports_is_what_runs_there() -> None:
    """Calls that end take their work off a node that never reports."""
    load = NodeLoad()
    tickets = [load.start(forwards=10, now=0.0) for _ in range(3)]
    waiting = load.drain_seconds
    load.finish(tickets[1])
    assert load.drain_seconds < waiting
    load.finish(tickets[0])
    load.finish(tickets[2])
    assert (load.drain_seconds, load.in_flight) == (0.0, 0)
