"""A router process in front of workers that are full: cancelled calls, hints, scaling signals."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial

import pytest

from braid.inference.v1 import inference_pb2 as pb
from braid.worker.v1.worker_pb2 import NODE_STATE_READY, NodeStatus
from services.chassis.registry import Registry
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import TASK
from tests.router.processes import Router, joined


class NarrowWorker(FakeWorker):
    """One slot: a call runs until the test lets it go, the others wait, as its status tells."""

    def __init__(self) -> None:
        super().__init__("narrow")
        self.script = self._one_at_a_time
        self.ran: list[str] = []
        self.steps = asyncio.Semaphore(0)
        self._slot = asyncio.Lock()
        self._inside = 0

    async def _one_at_a_time(self, request: pb.GenerateRequest) -> AsyncIterator[str]:
        await self.count(1)
        try:
            async with self._slot:
                self.ran.append(request.request_id)
                await self.steps.acquire()
                yield "ok"
        finally:
            await self.count(-1)

    async def count(self, change: int) -> None:
        """Says how many calls are inside now."""
        self._inside += change
        await self.report(
            NodeStatus(
                state=NODE_STATE_READY,
                accepting=True,
                running=min(self._inside, 1),
                queued=max(self._inside - 1, 0),
                pending_forwards=self._inside,
                step_seconds=0.01,
                slots=1,
            )
        )


@pytest.fixture
async def narrow(router: Router, registry: Registry) -> AsyncIterator[NarrowWorker]:
    """The one worker there is."""
    worker = NarrowWorker()
    await worker.start()
    await worker.count(0)
    await joined(router, registry, worker)
    yield worker
    await worker.stop()


def call(router: Router, name: str, **more: object) -> asyncio.Task[str]:
    """A call under way, and in the end its text."""
    request = pb.GenerateRequest(request_id=name, task=TASK, prompt="x", **more)  # type: ignore[arg-type]

    async def run() -> str:
        return str((await router.client.Generate(request, timeout=30)).text)

    return asyncio.create_task(run())


async def waiting_are(router: Router, count: int) -> bool:
    """Whether so many calls wait in the router, by its metrics."""
    page = await router.scrape()
    found = re.findall(r'braid_router_queue_depth\{group="diffusion",[^}]*\} ([0-9.]+)', page)
    return sum(map(float, found)) == count


async def test_cancelled_calls_never_run(router: Router, narrow: NarrowWorker) -> None:
    """Of twenty calls that wait nineteen leave; a new one then runs after at most one other."""
    running = call(router, "running")
    await eventually(lambda: narrow.ran == ["running"])
    waiting = [call(router, f"w{index}") for index in range(20)]
    await eventually(partial(waiting_are, router, 19))
    for one in waiting[1:]:
        one.cancel()
    await eventually(partial(waiting_are, router, 0))
    new = call(router, "new")
    await eventually(partial(waiting_are, router, 1))
    for _ in range(3):
        narrow.steps.release()
    await asyncio.gather(running, waiting[0], new)
    assert len(narrow.ran) == 3
    assert narrow.ran[-1] == "new"


async def test_urgent_call_overtakes(router: Router, narrow: NarrowWorker) -> None:
    """A person's call goes before those of lower classes that came earlier."""
    first = [call(router, "running")]
    await eventually(lambda: narrow.ran == ["running"])
    first.append(call(router, "next"))
    await eventually(lambda: len(narrow.received) == 2)
    batch = call(router, "batch", priority=pb.PRIORITY_BATCH)
    person = call(router, "person", priority=pb.PRIORITY_INTERACTIVE)
    await eventually(partial(waiting_are, router, 2))
    for _ in range(4):
        narrow.steps.release()
    await asyncio.gather(*first, batch, person)
    assert narrow.ran == ["running", "next", "person", "batch"]


async def test_load_of_a_group_is_shown(router: Router, narrow: NarrowWorker) -> None:
    """The table shows who waits, for how long, and steps x concurrency; metrics do as well."""
    calls = [call(router, f"c{index}", sampling=pb.Sampling(seed=1)) for index in range(4)]

    async def lined_up() -> bool:
        (load,) = (await router.table()).groups
        return load.queued == 2 and load.pending_forwards > 2

    await eventually(lined_up)
    (load,) = (await router.table()).groups
    assert load.expected_wait.ToMilliseconds() > 0
    page = await router.scrape()
    assert re.search(r'braid_router_pending_forwards\{group="diffusion"\} [1-9]', page)
    assert re.search(r'braid_router_expected_wait_seconds\{group="diffusion"\} 0*\.?[0-9.]+', page)
    for _ in calls:
        narrow.steps.release()
    await asyncio.gather(*calls)
