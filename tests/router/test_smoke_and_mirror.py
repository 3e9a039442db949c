"""Calls to a named node, and copies of calls, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import GroupShare, Mirror, Policy, Route
from services.chassis.errors import EngineFailure
from services.router.comparison import Comparison
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE, TASK, drained, failure, summary
from tests.router.proxies import Front, front, table_node

TO_CANARY = (("x-braid-target-node", "canary"),)


@pytest.fixture
async def stable() -> AsyncIterator[FakeWorker]:
    """The worker that the policy chooses."""
    worker = FakeWorker("stable")
    await worker.start()
    yield worker
    await worker.stop()


@pytest.fixture
async def canary() -> AsyncIterator[FakeWorker]:
    """A worker of a new version in a group of its own."""
    worker = FakeWorker("canary", "canary", version="v2")
    await worker.start()
    yield worker
    await worker.stop()


@pytest.fixture
async def router(stable: FakeWorker, canary: FakeWorker) -> AsyncIterator[Front]:
    """A router before both; the new version has weight 0 and no traffic share."""
    async with front(stable, canary) as running:
        idle = replace(table_node(canary), weight=0)
        known = running.tables.table.changed([idle])
        running.tables.table = replace(known, traffic={"m": {"v1": 1, "v2": 0}})
        yield running


@pytest.mark.parametrize("streaming", [False, True])
async def test_named_node_is_reached_at_weight_zero(
    router: Front, canary: FakeWorker, streaming: bool
) -> None:
    """An operator's header reaches a node that takes no traffic, by the way of every call."""
    if streaming:
        events = await drained(router.client.GenerateStream(CODE, metadata=TO_CANARY))
        served_by = events[-1].finished.served_by
    else:
        call = router.client.Generate(CODE, metadata=TO_CANARY)
        served_by = (await call).served_by
        assert dict(await call.trailing_metadata())["x-braid-node"] == "canary"
    assert served_by.node_id == "canary"
    assert canary.received[0].metadata["x-request-id"]
    assert (await router.client.Generate(CODE)).served_by.node_id == "stable"
    assert set(router.inference.traffic.of_last(60)) == {("m", "v1")}


@pytest.mark.parametrize(
    ("request_", "target", "status"),
    [
        (CODE, "nobody", "NOT_FOUND NOT_FOUND"),
        (
            pb.GenerateRequest(task=TASK, prompt="x", thinking=pb.Thinking(enabled=True)),
            "canary",
            "INVALID_ARGUMENT UNSUPPORTED_PARAMETER",
        ),
        (
            pb.GenerateRequest(task=TASK, prompt="x", model="other"),
            "canary",
            "INVALID_ARGUMENT UNSUPPORTED_PARAMETER",
        ),
    ],
)
async def test_named_node_that_cannot(
    router: Front, request_: pb.GenerateRequest, target: str, status: str
) -> None:
    """A node that does not exist or cannot do it is an error, never another node's answer."""
    metadata = (("x-braid-target-node", target),)
    assert summary(await failure(router.client.Generate(request_, metadata=metadata))) == status


async def test_named_node_that_fails_is_not_replaced(router: Front, canary: FakeWorker) -> None:
    """A failing node's status comes back though the call might be replayed elsewhere."""

    async def broken(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        raise EngineFailure("broke")
        yield ""

    canary.script = broken
    safe = pb.GenerateRequest(task=TASK, prompt="x", retry_safe=True)
    error = await failure(router.client.Generate(safe, metadata=TO_CANARY))
    assert summary(error) == "INTERNAL ENGINE_FAILURE"


def mirror(router: Front, percent: int = 100, version: str = "v2") -> None:
    """Puts a policy into force that copies calls to the new version, which has weight."""
    route = Route(
        groups=[GroupShare(group="diffusion")],
        mirror=Mirror(group="canary", version=version, percent=percent),
    )
    router.tables.set_policy(Policy(default=route))
    nodes = router.tables.table.nodes.values()
    router.tables.table = router.tables.table.changed(replace(node, weight=100) for node in nodes)


def compared(router: Front) -> Comparison | None:
    """The one comparison there is."""
    found = router.inference.mirroring.comparisons.of_last(60)
    return found.get(("canary", "m", "v2", "m", "v1"))


def mirrored(router: Front, outcome: str) -> float:
    """Copies that came to this."""
    name = "braid_router_mirrored_total"
    return router.metrics.get_sample_value(name, {"outcome": outcome}) or 0


@pytest.mark.parametrize("streaming", [False, True])
async def test_copies_are_compared(router: Front, canary: FakeWorker, streaming: bool) -> None:
    """Each call is copied with the lowest class, and both outcomes stand side by side."""
    mirror(router)
    named = pb.GenerateRequest(task=TASK, prompt="x", model="m", priority=pb.PRIORITY_INTERACTIVE)
    for _ in range(3):
        if streaming:
            await drained(router.client.GenerateStream(named))
        else:
            assert (await router.client.Generate(named)).served_by.node_id == "stable"
    await eventually(lambda: mirrored(router, "compared") == 3)
    both = compared(router)
    assert both is not None
    assert both.original.codes == both.copy.codes == {"OK": 3}
    assert both.original.valid == both.copy.valid == 3
    assert {one.request.priority for one in canary.received} == {pb.PRIORITY_BATCH}
    assert set(router.inference.traffic.of_last(60)) == {("m", "v1")}


async def test_share_of_calls_is_copied(router: Front, canary: FakeWorker) -> None:
    """About the share that the rule says is copied, the rest is not."""
    mirror(router, percent=30)
    for _ in range(200):
        await router.client.Generate(CODE)
    await eventually(lambda: mirrored(router, "compared") == len(canary.received))
    assert 30 < len(canary.received) < 90


async def test_copies_are_dropped_first(router: Front, canary: FakeWorker) -> None:
    """Copies that would wait are not made, and a slow copy holds no caller up."""
    free = asyncio.Event()

    async def stuck(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        await free.wait()
        yield "ok"

    canary.script = stuck
    mirror(router)
    for _ in range(20):
        await router.client.Generate(CODE)
    assert mirrored(router, "dropped") == 12
    free.set()
    await eventually(lambda: mirrored(router, "compared") == 8)


async def test_copy_that_fails_costs_nobody(router: Front, canary: FakeWorker) -> None:
    """A copy's failure is counted on its side alone."""

    async def broken(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        raise EngineFailure("broke")
        yield ""

    canary.script = broken
    mirror(router)
    await router.client.Generate(CODE)
    await eventually(lambda: mirrored(router, "failed") == 1)
    both = compared(router)
    assert both is not None
    assert (both.original.codes, both.copy.codes) == ({"OK": 1}, {"INTERNAL": 1})


async def test_nobody_to_copy_to(router: Front) -> None:
    """A mirror without a node of its version drops its copies."""
    mirror(router, version="v3")
    assert (await router.client.Generate(CODE)).text == "ok"
    assert mirrored(router, "dropped") == 1
