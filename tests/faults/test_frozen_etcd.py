"""A registry that stops for longer than its leases live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from services.chassis.registration import Registration
from services.chassis.registry import Registry
from services.cli.etcd_process import EtcdProcess
from tests.etcd import settings_for
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import SLOW, outcome
from tests.router.processes import Router, running_router

TTL_S = 2


@asynccontextmanager
async def leased(registry: Registry, *workers: FakeWorker) -> AsyncIterator[None]:
    """The workers, each registered under a lease of its own."""
    async with asyncio.TaskGroup() as tasks:
        registrations = []
        for worker in workers:
            await worker.start()
            registration = Registration(registry, worker.key, worker.value_at, TTL_S)
            tasks.create_task(registration.run())
            registrations.append(registration)
        yield
        for registration in registrations:
            await registration.withdraw()
    for worker in workers:
        await worker.stop()


class SteadyCaller:
    """Ten calls a second, and what became of them."""

    def __init__(self, router: Router) -> None:
        self.outcomes: set[str] = set()
        self._router = router

    async def run(self) -> None:
        """Calls until cancelled."""
        while True:
            self.outcomes.add(await outcome(self._router))
            await asyncio.sleep(0.1)


async def test_frozen_etcd_costs_no_call(own_etcd: EtcdProcess, tmp_path: Path) -> None:
    """etcd frozen for three lives of a lease: no call fails, and all nodes come back by name."""
    workers = [FakeWorker(f"w{index}") for index in range(3)]
    async with (
        Registry(settings_for(own_etcd.endpoint)) as registry,
        running_router(own_etcd.endpoint, tmp_path) as router,
        leased(registry, *workers),
    ):
        await eventually(lambda: router.routable("w0", "w1", "w2"))
        caller = SteadyCaller(router)
        calling = asyncio.create_task(caller.run())
        stream = router.client.GenerateStream(SLOW, timeout=60)
        await stream.read()
        own_etcd.pause()
        await asyncio.sleep(3 * TTL_S)
        assert (await router.table()).stale
        own_etcd.resume()

        async def all_back() -> bool:
            listed = await registry.list("/braid/nodes/")
            table = await router.table()
            lingering = any(node.lingering for node in table.nodes)
            return len(listed.entries) == 3 and not lingering and not table.stale

        await eventually(all_back, 3 * TTL_S)
        await asyncio.sleep(TTL_S)
        assert await all_back()
        calling.cancel()
        assert caller.outcomes == {"w0", "w1", "w2"}
        assert router.logged("node_lingers")
        assert not stream.done()
        stream.cancel()
