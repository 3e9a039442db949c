"""Admission: who runs, who waits in which order, and who is refused at the door."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from braid.routing.v1.routing_pb2 import GroupShare, Overload, Overrides, Policy, Route
from services.chassis.errors import (
    DeadlineExceeded,
    NoWorkerAvailable,
    QueueFull,
    ServiceError,
    WaitTooLong,
)
from services.generation.types import Priority
from services.router.admission import Admission
from services.router.features import Features
from services.router.group_metrics import group_figures
from services.router.load import Ticket
from services.router.metrics import RouterMetrics
from services.router.node import TableNode
from services.router.policy import Decision, Reason, choose, overrides_of
from services.router.pool import NOBODY
from tests.router.tables import code, node, table

LONG_S = 60.0


def full(node_id: str, group: str = "diffusion", **more: object) -> TableNode:
    """A node of one slot that runs two calls of other routers, 10 forwards each."""
    return node(node_id, group, slots=1, running=2, pending=20, **more)  # type: ignore[arg-type]


class Scene:
    """Admission over a table, and the calls that were let go on, by name."""

    def __init__(self, *nodes: TableNode, length: int = 4, **route: object) -> None:
        groups = [GroupShare(group="diffusion")]
        policy = Policy(default=Route(groups=groups, **route))  # type: ignore[arg-type]
        self.loaded = True
        self.table = table(*nodes, policy=policy)
        metrics = RouterMetrics(CollectorRegistry())
        self.admission = Admission(self, metrics, Random(0), length)
        self.placed: list[str] = []
        self._tickets: dict[str, tuple[TableNode, Ticket]] = {}

    async def place(self, features: Features | None = None, life_s: float = LONG_S) -> Decision:
        """One call at the door."""
        features = features or code()
        decision = choose(features, self.table, Random(0))
        return await self.admission.place(decision, features, time.monotonic() + life_s, NOBODY)

    def call(
        self, name: str, priority: Priority = Priority.NORMAL, life_s: float = LONG_S
    ) -> asyncio.Task[str]:
        """A call that, once it has its place, stays on its node until it is finished."""

        async def run() -> str:
            decision = await self.place(code(priority=priority), life_s)
            self._tickets[name] = decision.node, decision.node.load.start(1, time.monotonic())
            self.placed.append(name)
            return decision.node.record.node_id

        return asyncio.create_task(run())

    async def finish(self, name: str) -> None:
        """A call ends and its place goes to the next one."""
        holder, ticket = self._tickets.pop(name)
        holder.load.finish(ticket)
        self.admission.freed(holder.record.group)
        await asyncio.sleep(0)

    async def free(self, known: TableNode, running: int) -> None:
        """A node reports that so many calls run on it."""
        status = known.load.status
        assert status is not None
        report = type(status)(slots=1, running=running, step_seconds=0.01, pending_forwards=10)
        known.load.report(report, time.monotonic())
        self.admission.review()
        await asyncio.sleep(0)

    @property
    def waiting(self) -> int:
        """Calls in all lines."""
        return sum(map(len, self.admission.lines.values()))


async def queued(scene: Scene, *calls: asyncio.Task[str]) -> None:
    """Lets the calls reach their lines."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert scene.waiting >= len(calls)


async def test_node_with_room_is_taken_before_anybody_waits() -> None:
    """A call whose drawn node is full goes to another of the version that is not."""
    busy, idle = full("busy"), node("idle", slots=1)
    scene = Scene(busy, idle)
    decision = Decision(scene.table.policy.rules.default, Reason.RULE, busy)
    placed = await scene.admission.place(decision, code(), time.monotonic() + 1, NOBODY)
    assert placed.node.record.node_id == "idle"


async def test_served_by_class_then_by_deadline() -> None:
    """Places go to the most urgent class, in it to the nearest deadline, then to the first."""
    busy = full("w1")
    scene = Scene(busy, length=9)
    calls = [
        scene.call("batch", Priority.BATCH, life_s=1),
        scene.call("late", life_s=50),
        scene.call("later", life_s=60),
        scene.call("soon", life_s=20),
        scene.call("person", Priority.INTERACTIVE, life_s=60),
    ]
    await queued(scene, *calls)
    await scene.free(busy, running=1)
    for name in ("person", "soon", "late", "later"):
        assert scene.placed[-1] == name
        await scene.finish(name)
    assert scene.placed == ["person", "soon", "late", "later", "batch"]
    assert not scene.admission.lines


async def test_full_line_refuses_at_once_with_a_hint() -> None:
    """A call that finds the line full is told when to come again, by what is ahead of it."""
    scene = Scene(full("w1"), length=2)
    calls = [scene.call("a"), scene.call("b")]
    await queued(scene, *calls)
    with pytest.raises(QueueFull) as raised:
        await scene.place()
    assert raised.value.retry_after_s == pytest.approx(scene.admission.wait_s(*ahead()), rel=0.1)
    for call in calls:
        call.cancel()


def ahead() -> tuple[str, int, float]:
    """Where a normal call with a late deadline would stand."""
    return "diffusion", Priority.NORMAL, time.monotonic() + LONG_S


async def test_urgent_call_displaces_the_least_urgent() -> None:
    """In a full line a person's call takes the place of the last of a lower class."""
    scene = Scene(full("w1"), length=2)
    batch, normal = scene.call("batch", Priority.BATCH), scene.call("normal")
    await queued(scene, batch, normal)
    person = scene.call("person", Priority.INTERACTIVE)
    with pytest.raises(QueueFull):
        await batch
    assert scene.waiting == 2
    for call in (person, normal):
        call.cancel()


async def test_call_that_would_be_late_is_refused_at_the_door() -> None:
    """A call whose turn comes after its deadline does not even join the line."""
    scene = Scene(full("w1"))
    with pytest.raises(WaitTooLong) as raised:
        await scene.place(life_s=0.05)
    assert raised.value.retry_after_s == pytest.approx(0.1, rel=0.2)
    assert not scene.admission.lines


async def test_deadline_ends_the_wait() -> None:
    """A call that waited longer than expected ends at its deadline and leaves the line."""
    scene = Scene(node("w1", slots=1, running=2))
    with pytest.raises(DeadlineExceeded):
        await scene.place(life_s=0.1)
    assert not scene.admission.lines


async def test_cancelled_call_leaves_the_line() -> None:
    """A caller that goes away is never given a place."""
    busy = full("w1")
    scene = Scene(busy)
    gone, stays = scene.call("gone"), scene.call("stays")
    await queued(scene, gone, stays)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    await scene.free(busy, running=1)
    assert await stays == "w1"
    assert scene.placed == ["stays"]


async def test_place_of_a_caller_that_leaves_goes_to_the_next() -> None:
    """A place given in the very moment in which its caller leaves is not lost."""
    busy = full("w1")
    scene = Scene(busy)
    gone, stays = scene.call("gone", life_s=10), scene.call("stays", life_s=20)
    await queued(scene, gone, stays)
    status = busy.load.status
    assert status is not None
    busy.load.report(type(status)(slots=1, running=1, step_seconds=0.01), time.monotonic())
    scene.admission.review()
    gone.cancel()
    assert await stays == "w1"
    assert busy.load.reserved == 0


async def test_new_node_serves_the_line() -> None:
    """A node that joins takes the calls that wait, as many as it has room for."""
    scene = Scene(full("w1"))
    calls = [scene.call(str(index)) for index in range(3)]
    await queued(scene, *calls)
    scene.table = scene.table.changed([node("w2", slots=1)])
    scene.admission.review()
    await asyncio.sleep(0)
    assert scene.placed == ["0", "1"]
    assert await calls[0] == "w2"
    calls[2].cancel()


async def test_nobody_left_to_wait_for() -> None:
    """Calls in line end at once where the last node that could take them goes."""
    busy = full("w1")
    scene = Scene(busy)
    call = scene.call("a")
    await queued(scene, call)
    scene.table = scene.table.changed([replace(busy, reason="does not answer")])
    scene.admission.review()
    with pytest.raises(NoWorkerAvailable):
        await call
    assert not scene.admission.lines


async def test_line_holds_to_the_version_drawn() -> None:
    """A call waits for its version, so that shares hold under load; a free other one is not it."""
    old, new = node("w1", slots=1), full("w2", version="v2")
    scene = Scene(old, new)
    decision = Decision(scene.table.policy.rules.default, Reason.RULE, new)
    placing = scene.admission.place(decision, code(), time.monotonic() + LONG_S, NOBODY)
    waiting = asyncio.ensure_future(placing)
    await asyncio.sleep(0)
    scene.admission.review()
    assert scene.waiting == 1
    await scene.free(new, running=1)
    assert (await waiting).node is new


async def test_one_who_cannot_go_does_not_stop_the_others() -> None:
    """A place that the first in line cannot use goes to the next who can."""
    able, plain = full("able"), full("plain", version="v2", capabilities=())
    scene = Scene(able, plain)
    picky = asyncio.ensure_future(scene.place(code(needs=frozenset({"infill"})), life_s=10))
    await asyncio.sleep(0)
    decision = Decision(scene.table.policy.rules.default, Reason.RULE, plain)
    placing = scene.admission.place(decision, code(), time.monotonic() + LONG_S, NOBODY)
    other = asyncio.ensure_future(placing)
    await asyncio.sleep(0)
    await scene.free(plain, running=1)
    assert (await other).node is plain
    assert not picky.done()
    picky.cancel()


async def test_queue_share_of_a_rule() -> None:
    """Calls of a rule take at most its share of the line."""
    scene = Scene(full("w1"), length=4, queue_share=50)
    calls = [scene.call("a"), scene.call("b")]
    await queued(scene, *calls)
    with pytest.raises(QueueFull):
        await scene.place()
    for call in calls:
        call.cancel()


async def test_overload_lowers_the_steps_of_calls_that_wait() -> None:
    """Where the rule says so a call that has to wait is done in fewer steps."""
    busy = full("w1")
    overload = Overload(overrides=Overrides(max_steps=2))
    scene = Scene(busy, overload=overload, overrides=Overrides(max_steps=8, max_new_tokens=9))
    placing = asyncio.ensure_future(scene.place())
    await asyncio.sleep(0)
    await scene.free(busy, running=1)
    changed = overrides_of(await placing, code(), scene.table)
    assert changed is not None
    assert (changed.max_steps, changed.max_new_tokens) == (2, 9)


@pytest.mark.parametrize("life_s", [0.05, LONG_S])
async def test_overload_moves_what_the_line_does_not_take(life_s: float) -> None:
    """A call that is too late for the line, or finds it full, goes to the rule's other group."""
    spare = node("spare", "ar", slots=1)
    scene = Scene(full("w1"), spare, length=0, overload=Overload(groups=["ar"]))
    decision = await scene.place(life_s=life_s)
    assert (decision.node.record.node_id, decision.reason) == ("spare", Reason.OVERLOAD)
    spare.load.reserved = 2
    with pytest.raises(ServiceError) as raised:
        await scene.place(life_s=life_s)
    assert raised.value.code.name == "RESOURCE_EXHAUSTED"


async def test_other_group_needs_the_capability() -> None:
    """The other group takes only what it can do."""
    spare = node("spare", "ar", slots=1, capabilities=())
    scene = Scene(full("w1"), spare, length=0, overload=Overload(groups=["ar"]))
    with pytest.raises(QueueFull):
        await scene.place(code(needs=frozenset({"infill"})))


async def test_figures_of_a_group() -> None:
    """Queue depth by class, the wait of the next call, and steps x concurrency are known."""
    scene = Scene(full("w1"))
    call = scene.call("a", Priority.BATCH)
    await queued(scene, call)
    (figures,) = group_figures(scene.table, scene.admission)
    assert dict(figures.queued) == {Priority.BATCH: 1}
    assert figures.pending_forwards == 20 + code().forwards(diffusion=True)
    assert figures.expected_wait_s == pytest.approx(0.1)
    call.cancel()


async def test_no_wait_where_there_is_room() -> None:
    """A group with a free slot shows no wait, and neither does one without nodes."""
    scene = Scene(node("w1", slots=1), full("w2"))
    assert [it.expected_wait_s for it in group_figures(scene.table, scene.admission)] == [0.0]
