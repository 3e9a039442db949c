"""Everything at once for a while: traffic, workers that are killed, etcd that is restarted."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path

import psutil
import pytest

from braid.inference.v1 import inference_pb2 as pb
from services.cli.etcd_process import EtcdProcess
from tests.eventually import eventually
from tests.router.calls import LOST, SLOW, TASK, drained, failure, summary
from tests.router.processes import Router, running_router, worker_process
from tests.router.traffic import Traffic

SAFE = pb.GenerateRequest(task=TASK, prompt="slow 2", retry_safe=True)
NAMES = ("w0", "w1", "w2")
LENGTH_S = 10.0
GROWTH_BYTES = 32 * 1024 * 1024


@pytest.fixture
async def router(own_etcd: EtcdProcess, tmp_path: Path) -> AsyncIterator[Router]:
    """A router process with an etcd of its own."""
    async with running_router(own_etcd.endpoint, tmp_path) as running:
        yield running


async def test_only_streams_on_killed_workers_fail(router: Router, own_etcd: EtcdProcess) -> None:
    """Workers are killed in turn and etcd is restarted: nobody else notices, memory stays."""
    memory = psutil.Process(router.process.pid).memory_info
    async with AsyncExitStack() as stack:
        workers = {name: stack.enter_context(worker_process(name, own_etcd)) for name in NAMES}
        await eventually(lambda: router.routable(*NAMES), 20)
        traffic = Traffic(router, SAFE, callers=4)
        await traffic.reached("w0", 10)
        before, started = memory().rss, time.monotonic()
        for name in cycle(NAMES):
            lost = await lost_with(router, workers[name])
            assert lost <= {LOST}
            if name == NAMES[0]:
                own_etcd.kill()
                own_etcd.start()
            workers[name] = stack.enter_context(worker_process(name, own_etcd))
            await traffic.reached(name, traffic.outcomes[name] + 5)
            if time.monotonic() - started > LENGTH_S:
                break
        await traffic.end()
        assert set(traffic.outcomes) == set(NAMES)
        assert memory().rss - before < GROWTH_BYTES


async def lost_with(router: Router, worker: subprocess.Popen[bytes]) -> set[str]:
    """Kills a worker under a few streams; what became of those that ended by it."""
    streams = [router.client.GenerateStream(SLOW, timeout=60) for _ in range(3)]
    for stream in streams:
        await stream.read()
    ends = [asyncio.create_task(failure(drained(stream))) for stream in streams]
    worker.kill()
    ended, _ = await asyncio.wait(ends, timeout=1)
    lost = {summary(end.result()) for end in ended}
    for stream in streams:
        stream.cancel()
    await asyncio.gather(*ends, return_exceptions=True)
    return lost
