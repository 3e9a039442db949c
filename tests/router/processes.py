"""Router processes for tests, with clients of all their ports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from braid.inference.v1 import inference_pb2, inference_pb2_grpc
from braid.routing.v1 import routing_pb2, routing_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.registry import Registry
from services.chassis.security.tls import Dial
from services.cli.etcd_process import EtcdProcess
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.ports import free_port

START_S = 20.0


class RouterProcess:
    """A router on free ports, from its start to its end."""

    def __init__(
        self,
        etcd: str,
        folder: Path,
        environ: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        ports = [free_port() for _ in range(3)]
        self.address, self.admin_address, self.ops_address = (f"127.0.0.1:{p}" for p in ports)
        self.log_path = folder / f"router-{ports[0]}.log"
        variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "BRAID_ETCD": etcd,
            "BRAID_LEASE_TTL_S": "3",
            "BRAID_PORT": str(ports[0]),
            "BRAID_ADMIN_PORT": str(ports[1]),
            "BRAID_OPS_PORT": str(ports[2]),
            **(environ or {}),
        }
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "services.router.main", *arguments],
                env=variables,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything it printed."""
        return self.log_path.read_text()

    def assert_running(self) -> None:
        """Fails with its log where it has ended."""
        assert self._process.poll() is None, self.log

    async def ended(self) -> int:
        """Its exit code, once it has ended by itself."""
        return await asyncio.to_thread(self._process.wait, 20)

    async def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return await self.ended()

    def kill(self) -> None:
        """Ends it at once, if it still runs."""
        self._process.kill()
        self._process.wait()


class Router:
    """A router process as its callers and operators see it."""

    def __init__(
        self, process: RouterProcess, inference: grpc.aio.Channel, admin: grpc.aio.Channel
    ) -> None:
        self.process = process
        self.client = inference_pb2_grpc.InferenceServiceStub(inference)
        self.admin = routing_pb2_grpc.RouterServiceStub(admin)
        self._health: Any = health_pb2_grpc.HealthStub(inference)
        self._logged_before = len(process.log)

    async def serving(self) -> bool:
        """Whether the inference port's health says SERVING; False while nobody listens."""
        try:
            answer = await self._health.Check(health_pb2.HealthCheckRequest(), timeout=2)
        except grpc.aio.AioRpcError:
            self.process.assert_running()
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def node_of(self, request: inference_pb2.GenerateRequest) -> str:
        """Id of the node that answers a request."""
        answer = await self.client.Generate(request, timeout=10)
        return str(answer.served_by.node_id)

    async def table(self) -> routing_pb2.GetRoutingTableResponse:
        """The routing table in force."""
        request = routing_pb2.GetRoutingTableRequest()
        table: routing_pb2.GetRoutingTableResponse = await self.admin.GetRoutingTable(
            request, timeout=5
        )
        return table

    async def nodes(self) -> dict[str, routing_pb2.TableNode]:
        """Nodes of the table, by id."""
        return {node.node.node_id: node for node in (await self.table()).nodes}

    async def routable(self, *node_ids: str) -> bool:
        """Whether all these nodes can be chosen."""
        nodes = await self.nodes()
        return all(name in nodes and nodes[name].routable for name in node_ids)

    async def scrape(self) -> str:
        """The metrics page."""
        return await asyncio.to_thread(_fetch, f"http://{self.process.ops_address}/metrics")

    def logged(self, event: str) -> list[dict[str, object]]:
        """Log lines of one event since this client exists."""
        lines = self.process.log[self._logged_before :].splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in events if line.get("event") == event]


@asynccontextmanager
async def connected(process: RouterProcess, dial: Dial = open_channel) -> AsyncIterator[Router]:
    """Clients of a router that may still be starting."""
    async with dial(process.address) as inference, dial(process.admin_address) as admin:
        yield Router(process, inference, admin)


@asynccontextmanager
async def running_router(
    etcd: str,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    dial: Dial = open_channel,
) -> AsyncIterator[Router]:
    """A router of its own that serves; killed at the end."""
    process = RouterProcess(etcd, folder, environ)
    try:
        async with connected(process, dial) as router:
            await eventually(router.serving, START_S)
            yield router
    finally:
        process.kill()


@contextmanager
def worker_process(node_id: str, etcd: EtcdProcess) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own that registers by itself; dead at the end."""
    command = [sys.executable, "-m", "tests.fakes.worker", node_id, etcd.endpoint]
    process = subprocess.Popen(command, env={"PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def register(registry: Registry, *workers: FakeWorker) -> None:
    """Puts the workers' records, without a lease."""
    for worker in workers:
        await registry.put(worker.key, worker.value)


async def joined(router: Router, registry: Registry, *workers: FakeWorker) -> None:
    """Registers the workers and waits until they take calls."""
    await register(registry, *workers)
    await eventually(lambda: router.routable(*(worker.record.node_id for worker in workers)))


def _fetch(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        return str(answer.read().decode())
