"""A router's inference port in the test's own process, over a table made by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random

from prometheus_client import CollectorRegistry

from braid.inference.v1 import inference_pb2_grpc
from braid.routing.v1 import routing_pb2
from services.chassis.channel import open_channel
from services.chassis.server import RpcServer, ServiceEntry
from services.router.door import Door, OpenDoor
from services.router.inference import Bounds, Inference
from services.router.links import SERVICE, Links
from services.router.load import NodeLoad
from services.router.node import TableNode, abilities_of
from services.router.policy_compiler import compile_policy
from services.router.proxy import add_proxy
from services.router.table import PolicyInForce, RoutingTable
from tests.fakes.worker import FakeWorker


def table_node(worker: FakeWorker) -> TableNode:
    """The worker as a node that takes calls."""
    record = worker.record
    return TableNode(worker.key, record, 100, "", NodeLoad(), abilities_of(record))


class FixedTables:
    """A table source that tests set."""

    def __init__(self, *workers: FakeWorker) -> None:
        self.loaded = True
        self.table = RoutingTable(PolicyInForce.default()).changed(map(table_node, workers))

    def add(self, worker: FakeWorker) -> None:
        """One more worker takes calls."""
        self.table = self.table.changed([table_node(worker)])

    def set_policy(self, policy: routing_pb2.Policy) -> None:
        """Puts a policy into force."""
        in_force = PolicyInForce(policy, compile_policy(policy))
        self.table = replace(self.table, policy=in_force)

    def mark(self, key: str, ejected: str) -> None:
        """Says why a node is given no calls."""
        self.table = self.table.changed([replace(self.table.nodes[key], ejected=ejected)])

    def forget(self) -> None:
        """As if nothing had been read from the registry yet."""
        self.loaded = False
        self.table = replace(self.table, nodes={}, groups={})


@dataclass(frozen=True)
class Front:
    """The proxy's client, tables and metrics."""

    address: str
    client: inference_pb2_grpc.InferenceServiceStub
    tables: FixedTables
    metrics: CollectorRegistry
    inference: Inference


@asynccontextmanager
async def front(
    *workers: FakeWorker,
    default_deadline_s: float = 30.0,
    queue_length: int = 8,
    door: Door | None = None,
) -> AsyncIterator[Front]:
    """A running proxy before ``workers``, closed at the end; open without a ``door``."""
    tables, metrics = FixedTables(*workers), CollectorRegistry()
    async with asyncio.TaskGroup() as tasks:
        links = Links(tasks)
        bounds = Bounds(default_deadline_s, queue_length)
        inference = Inference(tables, links, tasks, metrics, door or OpenDoor(), bounds, Random(0))
        entry = ServiceEntry(SERVICE, add_proxy, inference.proxy)
        server = RpcServer("127.0.0.1:0", [entry])
        port = await server.start(serving=True)
        address = f"127.0.0.1:{port}"
        try:
            async with open_channel(address) as channel:
                client = inference_pb2_grpc.InferenceServiceStub(channel)
                yield Front(address, client, tables, metrics, inference)
        finally:
            await server.stop(1.0)
            inference.close()
            for worker in workers:
                links.retire(worker.record.address)
