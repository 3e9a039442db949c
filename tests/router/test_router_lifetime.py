"""A router's start, its registry's outages and its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from services.chassis.registry import Registry
from services.cli.etcd_process import EtcdProcess
from tests.etcd import new_etcd, settings_for
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import ONE_SECOND, drained, outcome
from tests.router.processes import (
    Router,
    RouterProcess,
    connected,
    joined,
    register,
    running_router,
)


async def test_outage_of_etcd_keeps_the_table(
    own_etcd: EtcdProcess, tmp_path: Path, workers: list[FakeWorker]
) -> None:
    """With etcd gone calls go on from the last table, which says that it is stale."""
    async with (
        Registry(settings_for(own_etcd.endpoint)) as registry,
        running_router(own_etcd.endpoint, tmp_path) as router,
    ):
        await joined(router, registry, workers[0])
        own_etcd.kill()
        await eventually(lambda: is_stale(router), 20)
        assert await outcome(router) == "w1"
        assert "braid_router_registry_stale 1.0" in await router.scrape()
        own_etcd.start()

        async def fresh() -> bool:
            return not await is_stale(router)

        await eventually(fresh, 20)
        assert await outcome(router) == "w1"


async def is_stale(router: Router) -> bool:
    """Whether the router's table is a former one."""
    return (await router.table()).stale


async def test_start_without_etcd(tmp_path: Path, workers: list[FakeWorker]) -> None:
    """A router that starts before its etcd says so to callers, and serves once it is up."""
    etcd = new_etcd(tmp_path)
    process = RouterProcess(etcd.endpoint, tmp_path)
    try:
        async with connected(process) as router:

            async def waiting() -> bool:
                return await outcome(router) == "UNAVAILABLE REGISTRY_UNAVAILABLE"

            await eventually(waiting, 20)
            assert not await router.serving()
            etcd.start()
            async with Registry(settings_for(etcd.endpoint)) as registry:
                await register(registry, workers[0])
            await eventually(router.serving, 20)
            await eventually(lambda: router.routable("w1"))
            assert await outcome(router) == "w1"
    finally:
        process.kill()
        etcd.kill()


async def test_start_from_the_disk_snapshot(
    own_etcd: EtcdProcess, tmp_path: Path, workers: list[FakeWorker]
) -> None:
    """With etcd down a router starts from what it saved, and serves from it."""
    environ = {"BRAID_STATE_DIR": str(tmp_path / "state")}
    async with (
        Registry(settings_for(own_etcd.endpoint)) as registry,
        running_router(own_etcd.endpoint, tmp_path, environ) as router,
    ):
        await joined(router, registry, workers[0])
        assert await router.process.stop() == 0
    own_etcd.kill()
    async with running_router(own_etcd.endpoint, tmp_path, environ) as router:
        assert await outcome(router) == "w1"
        assert await is_stale(router)


async def test_drain_lets_running_calls_finish(
    registry: Registry, etcd: EtcdProcess, tmp_path: Path, workers: list[FakeWorker]
) -> None:
    """SIGTERM takes the router out of the registry, lets its stream finish and exits with 0."""
    async with running_router(etcd.endpoint, tmp_path, {"BRAID_NODE_ID": "leaving"}) as router:
        await joined(router, registry, workers[0])
        stream = router.client.GenerateStream(ONE_SECOND, timeout=20)
        await stream.read()
        record = await registry.get("/braid/routers/leaving")
        assert record is not None
        assert json.loads(record.value)["address"] == router.process.address
        stopping = asyncio.create_task(router.process.stop())
        assert (await drained(stream))[-1].finished.served_by.node_id == "w1"
        assert await stopping == 0
        assert await registry.get("/braid/routers/leaving") is None


async def test_port_in_use_ends_the_start(
    router: Router, etcd: EtcdProcess, tmp_path: Path
) -> None:
    """A second router on the same port exits with one clear line."""
    taken = router.process.address.rpartition(":")[2]
    second = RouterProcess(etcd.endpoint, tmp_path, {"BRAID_PORT": taken})
    assert await second.ended() == 1
    assert f"cannot listen on {router.process.address}" in second.log
    assert await router.serving()
