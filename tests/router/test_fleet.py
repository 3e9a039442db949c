"""A router of several processes on one port."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2_grpc
from braid.routing.v1 import routing_pb2, routing_pb2_grpc
from services.chassis.channel import CHANNEL_OPTIONS, open_channel
from services.chassis.registry import Registry
from services.cli.etcd_process import EtcdProcess
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE
from tests.router.processes import RouterProcess, register

OWN_PORTS = {"BRAID_ADMIN_PORT": "0", "BRAID_OPS_PORT": "0"}
ENVIRON = OWN_PORTS | {"BRAID_PROCESSES": "2"}
OWN_CONNECTION = (*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1))


@pytest.fixture
def etcd(own_etcd: EtcdProcess) -> EtcdProcess:
    """One of its own: into the shared one, the tests' shared router puts its record."""
    return own_etcd


@pytest.fixture
async def fleet(
    etcd: EtcdProcess, registry: Registry, workers: list[FakeWorker], tmp_path: Path
) -> AsyncIterator[RouterProcess]:
    """Two processes on one port, before one worker, and no other router in this etcd."""
    await register(registry, workers[0])
    environ = OWN_PORTS | {"BRAID_NODE_ID": "fleet"}
    process = RouterProcess(etcd.endpoint, tmp_path, environ, ("--processes", "2"))
    try:
        await eventually(lambda: all_serving(registry, 2), 20)
        yield process
    finally:
        process.kill()


async def routers(registry: Registry) -> dict[str, dict[str, str]]:
    """Records of the processes by their ids."""
    listing = await registry.list("/braid/routers/")
    records = (json.loads(entry.value) for entry in listing.entries.values())
    return {record["node_id"]: record for record in records}


async def all_serving(registry: Registry, count: int) -> bool:
    """Whether so many are registered and have a node to send calls to."""
    records = await routers(registry)
    seen = [await calls_of(record) for record in records.values()]
    return len(seen) == count and all(calls is not None for calls in seen)


async def calls_of(record: dict[str, str]) -> int | None:
    """Calls that one process has answered; None while it has no node."""
    async with open_channel(record["admin_address"]) as channel:
        stub = routing_pb2_grpc.RouterServiceStub(channel)
        try:
            table = await stub.GetRoutingTable(routing_pb2.GetRoutingTableRequest(), timeout=2)
            figures = await stub.GetTraffic(routing_pb2.GetTrafficRequest(), timeout=2)
        except grpc.aio.AioRpcError:
            return None
    routable = any(node.routable for node in table.nodes)
    return sum(version.count for version in figures.versions) if routable else None


async def answer(address: str) -> str:
    """One call over a connection of its own."""
    async with grpc.aio.insecure_channel(address, options=OWN_CONNECTION) as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)
        response = await stub.Generate(CODE, timeout=5, wait_for_ready=True)
    return str(response.text)


async def test_processes_share_the_port(fleet: RouterProcess, registry: Registry) -> None:
    """Connections spread over processes that each have a table and a record of their own."""
    assert {await answer(fleet.address) for _ in range(40)} == {"ok"}
    records = await routers(registry)
    assert set(records) == {"fleet-0", "fleet-1"}
    assert {record["address"] for record in records.values()} == {fleet.address}
    counts = [await calls_of(record) for record in records.values()]
    assert all(counts)
    assert sum(filter(None, counts)) == 40


async def test_process_that_dies_is_replaced(fleet: RouterProcess, registry: Registry) -> None:
    """A process that is killed comes back, and meanwhile the other one answers."""
    before = await routers(registry)
    pids = {line["index"]: line["pid"] for line in events(fleet, "process_started")}
    os.kill(pids[0], signal.SIGKILL)
    assert {await answer(fleet.address) for _ in range(10)} == {"ok"}

    async def replaced() -> bool:
        record = (await routers(registry)).get("fleet-0", before["fleet-0"])
        return record["epoch"] != before["fleet-0"]["epoch"]

    await eventually(replaced, 20)


def events(fleet: RouterProcess, name: str) -> list[dict[str, int]]:
    """Log lines of one event."""
    lines = [json.loads(line) for line in fleet.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == name]


async def test_stop_drains_every_process(fleet: RouterProcess, registry: Registry) -> None:
    """SIGTERM to the parent takes all of them out of the registry, and it exits with 0."""
    assert await fleet.stop() == 0
    assert await routers(registry) == {}
    assert len(events(fleet, "router_stopped")) == 2


async def test_second_fleet_is_refused(
    fleet: RouterProcess, etcd: EtcdProcess, tmp_path: Path
) -> None:
    """Sharing is within one router: nobody else gets onto the port."""
    port = fleet.address.rpartition(":")[2]
    for processes in ("1", "2"):
        environ = ENVIRON | {"BRAID_PORT": port, "BRAID_PROCESSES": processes}
        second = RouterProcess(etcd.endpoint, tmp_path, environ)
        assert await second.ended() == 1
        assert f"cannot listen on {fleet.address}" in second.log


async def test_process_that_cannot_start_ends_the_fleet(etcd: EtcdProcess, tmp_path: Path) -> None:
    """Where a process cannot run as it is told to, the parent says so and exits.

    The other one may fail before it: its own port may be another one's here.
    """
    environ = ENVIRON | {"BRAID_OPS_PORT": etcd.endpoint.rpartition(":")[2]}
    process = RouterProcess(etcd.endpoint, tmp_path, environ)
    assert await process.ended() != 0
    assert re.search(r"router process \d ended", process.log)
