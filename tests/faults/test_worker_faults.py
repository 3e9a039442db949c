"""Worker processes that are frozen or killed behind a router process, under traffic."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.registry import Registry
from services.cli.etcd_process import EtcdProcess
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import LOST, SLOW, TASK, drained, failure, outcomes, summary
from tests.router.processes import Router, joined, running_router, worker_process
from tests.router.traffic import Traffic

SAFE = pb.GenerateRequest(task=TASK, prompt="slow 2", retry_safe=True)


@pytest.fixture
async def router(etcd: EtcdProcess, tmp_path: Path) -> AsyncIterator[Router]:
    """A router process of this test's own."""
    async with running_router(etcd.endpoint, tmp_path) as running:
        yield running


@pytest.fixture
async def steady(router: Router, registry: Registry) -> AsyncIterator[FakeWorker]:
    """A worker that stays well."""
    worker = FakeWorker("steady")
    await worker.start()
    await joined(router, registry, worker)
    yield worker
    await worker.stop()


async def test_killed_worker_costs_safe_calls_nothing(
    router: Router, steady: FakeWorker, etcd: EtcdProcess
) -> None:
    """Under traffic a worker is killed: every call that may be replayed is answered."""
    with worker_process("victim", etcd) as victim:
        await eventually(lambda: router.routable("victim"), 20)
        traffic = Traffic(router, SAFE)
        await traffic.reached("victim", 10)
        victim.kill()
        await traffic.reached(steady.record.node_id, traffic.outcomes["steady"] + 60)
        await traffic.end()
    assert set(traffic.outcomes) == {"victim", "steady"}


async def test_killed_worker_costs_its_streams_alone(
    router: Router, steady: FakeWorker, etcd: EtcdProcess
) -> None:
    """A kill ends the streams on that worker as lost, and no other call fails."""
    with worker_process("victim", etcd) as victim:
        await eventually(lambda: router.routable("victim"), 20)
        streams = [router.client.GenerateStream(SLOW, timeout=60) for _ in range(8)]
        for stream in streams:
            await stream.read()
        victim.kill()
        ends = [asyncio.create_task(failure(drained(stream))) for stream in streams]
        others = len(steady.received)

        def ended() -> list[asyncio.Task[grpc.aio.AioRpcError]]:
            return [end for end in ends if end.done()]

        await eventually(lambda: len(ended()) == len(streams) - others)
        assert {summary(end.result()) for end in ended()} == {LOST}
        assert await outcomes(router, 30) == {"steady"}
        assert len(ended()) == len(streams) - others
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def test_frozen_worker_is_passed_over(
    router: Router, steady: FakeWorker, etcd: EtcdProcess
) -> None:
    """A worker that stands still is left out once its status stream is silent, and comes back."""
    with worker_process("frozen", etcd) as frozen:
        await eventually(lambda: router.routable("frozen"), 20)
        os.kill(frozen.pid, signal.SIGSTOP)

        async def passed_over() -> bool:
            return not await router.routable("frozen")

        await eventually(passed_over, 10)
        assert await outcomes(router, 20) == {"steady"}
        os.kill(frozen.pid, signal.SIGCONT)
        await eventually(lambda: router.routable("frozen"), 10)
        seen = await outcomes(router, 40)
        assert seen == {"steady", "frozen"}
