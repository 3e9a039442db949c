"""How soon a traffic share put into etcd acts, and how closely shares are kept.

``python -m tests.benchmarks.bench_traffic``

A router process, a real etcd and workers without a model.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from services.chassis.registry import Registry
from tests.etcd import new_etcd, settings_for
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE
from tests.router.processes import Router, joined, running_router

PUTS = 100
CALLS, CALLERS = 2000, 8
KEY = "/braid/traffic/m"


async def put_shares(registry: Registry, **shares: int) -> None:
    """As an operator does."""
    await registry.put(KEY, json.dumps(shares).encode())


async def delays_ms(router: Router, registry: Registry) -> list[float]:
    """From the end of a put to the end of the first call that follows it, in milliseconds."""
    delays = []
    for index in range(PUTS):
        wanted = ("v1", "v2")[index % 2]
        await put_shares(registry, v1=int(wanted == "v1"), v2=int(wanted == "v2"))
        started = time.perf_counter()
        while (await router.client.Generate(CODE, timeout=5)).served_by.version != wanted:
            pass
        delays.append((time.perf_counter() - started) * 1e3)
    return delays


async def share_of_v2(router: Router) -> float:
    """Part of many calls that the second version answers, in percent."""
    counted: Counter[str] = Counter()

    async def caller() -> None:
        for _ in range(CALLS // CALLERS):
            counted[(await router.client.Generate(CODE, timeout=30)).served_by.version] += 1

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return 100 * counted["v2"] / counted.total()


async def main(folder: Path) -> None:
    """Starts everything, measures and prints."""
    etcd = new_etcd(folder)
    etcd.start()
    try:
        async with AsyncExitStack() as stack:
            registry = await stack.enter_async_context(Registry(settings_for(etcd.endpoint)))
            router = await stack.enter_async_context(running_router(etcd.endpoint, folder))
            workers = [FakeWorker(f"v1-{i}") for i in range(6)] + [FakeWorker("v2", version="v2")]
            for worker in workers:
                await worker.start()
                stack.push_async_callback(worker.stop)
            await joined(router, registry, workers[0], workers[-1])
            delays = sorted(await delays_ms(router, registry))
            p99 = delays[int(0.99 * len(delays))]
            print(f"share acts after     p50 {statistics.median(delays):.1f} ms, p99 {p99:.1f} ms")
            await put_shares(registry, v1=90, v2=10)
            print(f"10 % of {CALLS} calls  1 node of v1: {await share_of_v2(router):.1f} %")
            await joined(router, registry, *workers[1:-1])
            print(f"10 % of {CALLS} calls  6 nodes of v1: {await share_of_v2(router):.1f} %")
    finally:
        etcd.kill()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
