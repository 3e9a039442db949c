"""Figures and smoke tests from routers, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2
from braid.routing.v1 import routing_pb2, routing_pb2_grpc
from services.chassis import keys
from services.chassis.channel import open_channel
from services.chassis.registry import Registry
from services.chassis.server import RpcServer, ServiceEntry
from services.config_center.rollout.router_figures import RouterFigures
from tests.config_center.rollouts import rollout
from tests.ports import free_port


class Router(routing_pb2_grpc.RouterServiceServicer):
    """Says what a router would."""

    async def GetTraffic(self, request: Any, context: Any) -> routing_pb2.GetTrafficResponse:
        """Ten calls, some of which failed."""
        return routing_pb2.GetTrafficResponse(
            versions=[
                routing_pb2.VersionTraffic(
                    model="demo",
                    version="v2",
                    count=10,
                    errors={"INTERNAL": 2, "INVALID_ARGUMENT": 3},
                    judged=4,
                    valid_share=0.75,
                    p95=Duration(seconds=2),
                )
            ]
        )

    async def SmokeTest(self, request: Any, context: Any) -> routing_pb2.SmokeTestResponse:
        """The node's greeting."""
        answer = inference_pb2.GenerateResponse(text="hello")
        answer.served_by.node_id = request.node_id
        return routing_pb2.SmokeTestResponse(response=answer)


@pytest.fixture
async def figures(registry: Registry) -> AsyncIterator[RouterFigures]:
    """Two routers that answer, one that does not, and a broken record."""
    add = routing_pb2_grpc.add_RouterServiceServicer_to_server
    entry = ServiceEntry("braid.routing.v1.RouterService", add, Router())
    server = RpcServer("127.0.0.1:0", [entry])
    port = await server.start(serving=True)
    for name, at in (("a", port), ("b", port), ("dead", free_port())):
        record = b'{"node_id": "%s", "admin_address": "127.0.0.1:%d"}' % (name.encode(), at)
        await registry.put(keys.router_key(name), record)
    await registry.put(keys.router_key("odd"), b"{")
    yield RouterFigures(registry, open_channel)
    await server.stop(0)


async def put_node(registry: Registry, version: str) -> None:
    record = b'{"node_id": "n-1", "model": "demo", "version": "%s"}' % version.encode()
    await registry.put(keys.node_key("g", "n-1"), record)


async def test_figures_of_all_routers_are_one(figures: RouterFigures) -> None:
    """Counts are summed, the caller's own errors are left out, a dead router is passed over."""
    found = await figures.figures(rollout(), 60.0)
    candidate = found.candidate
    assert (candidate.count, candidate.errors) == (20, 4)
    assert (candidate.judged, candidate.invalid, candidate.p95_seconds) == (8, 2, 2.0)
    assert found.stable.count == 0
    assert found.smoke is None


@pytest.mark.parametrize(
    ("version", "answer", "fault"),
    [
        ("v2", "", ""),
        ("v2", "hello", ""),
        ("v2", "goodbye", "another answer"),
        ("v1", "", "no node serves v2"),
    ],
)
async def test_smoke_tests_ask_the_candidates_nodes(
    figures: RouterFigures, registry: Registry, version: str, answer: str, fault: str
) -> None:
    """Each node of the candidate must answer, and answer what it should."""
    await put_node(registry, version)
    first = rollout(0)
    first.plan.smoke.add(answer=answer)
    found = await figures.figures(first, 60.0)
    assert found.smoke is not None
    assert fault in found.smoke
    assert bool(found.smoke) == bool(fault)
