"""RouterService: the table in force, and decisions taken apart."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import grpc.aio
from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2
from braid.routing.v1 import routing_pb2, routing_pb2_grpc
from services.chassis.mirror import Mirror
from services.generation.wire import from_proto
from services.router.admission import Admission
from services.router.comparison import Comparisons
from services.router.explanation import explain
from services.router.features import features_of
from services.router.findings import findings_of
from services.router.group_metrics import GroupFigures, group_figures
from services.router.live_table import LiveTable
from services.router.node import TableNode
from services.router.traffic_figures import TrafficFigures
from services.router.traffic_report import traffic_report

Context = grpc.aio.ServicerContext[Any, Any]


Smoke = Callable[[bytes, str, Context], Awaitable[bytes]]
"""Answers a request, given as bytes, by the node of that id."""

SAMPLE = inference_pb2.GenerateRequest(
    task=inference_pb2.TASK_TEXT_GENERATION,
    prompt="Say hello.",
    sampling=inference_pb2.Sampling(max_new_tokens=8),
)
"""What a node is asked where an operator asks nothing."""


@dataclass(frozen=True, slots=True)
class View:
    """What there is to show."""

    live: LiveTable
    mirror: Mirror
    admission: Admission
    traffic: TrafficFigures
    comparisons: Comparisons


class RouterServicer(routing_pb2_grpc.RouterServiceServicer):
    """Shows what the router knows and sends smoke tests; changes nothing."""

    def __init__(self, view: View, smoke: Smoke, rng: Random) -> None:
        self._live = view.live
        self._view = view
        self._smoke = smoke
        self._rng = rng

    async def GetRoutingTable(
        self, _request: routing_pb2.GetRoutingTableRequest, _context: Context
    ) -> routing_pb2.GetRoutingTableResponse:
        """The table as it is now, with everything that was not taken into it."""
        now = time.monotonic()
        table, state = self._live.table, self._view.mirror.state
        nodes = sorted(table.nodes.values(), key=lambda node: node.key)
        return routing_pb2.GetRoutingTableResponse(
            revision=state.revision,
            age=_duration(0.0 if state.connected else state.age_s(now)),
            stale=not state.connected,
            nodes=[_table_node(node, now) for node in nodes],
            policy=table.policy.message,
            policy_built_in=table.policy.built_in,
            traffic={
                model: routing_pb2.Traffic(shares=shares) for model, shares in table.traffic.items()
            },
            rejected=[
                routing_pb2.RejectedValue(
                    key=value.key, revision=value.revision, reason=value.reason
                )
                for value in self._live.rejected
            ],
            findings=findings_of(table),
            groups=[_group_load(figures) for figures in group_figures(table, self._view.admission)],
        )

    async def Explain(
        self, request: routing_pb2.ExplainRequest, _context: Context
    ) -> routing_pb2.ExplainResponse:
        """Decides without sending; the request is checked like one that is sent."""
        message = request.request
        features = features_of(message, from_proto(message, now=time.monotonic()))
        return explain(features, self._live.table, self._rng)

    async def SmokeTest(
        self, request: routing_pb2.SmokeTestRequest, context: Context
    ) -> routing_pb2.SmokeTestResponse:
        """Asks one node, by the way of every call."""
        message = request.request if request.HasField("request") else SAMPLE
        started = time.monotonic()
        answer = await self._smoke(message.SerializeToString(), request.node_id, context)
        return routing_pb2.SmokeTestResponse(
            response=inference_pb2.GenerateResponse.FromString(answer),
            latency=_duration(time.monotonic() - started),
        )

    async def GetTraffic(
        self, request: routing_pb2.GetTrafficRequest, _context: Context
    ) -> routing_pb2.GetTrafficResponse:
        """Figures of the latest calls."""
        return traffic_report(request, self._view.traffic, self._view.comparisons)


def _group_load(figures: GroupFigures) -> routing_pb2.GroupLoad:
    return routing_pb2.GroupLoad(
        group=figures.group,
        queued=sum(figures.queued.values()),
        expected_wait=_duration(figures.expected_wait_s),
        pending_forwards=figures.pending_forwards,
    )


def _table_node(node: TableNode, now: float) -> routing_pb2.TableNode:
    shown = routing_pb2.TableNode(
        node=node.record,
        weight=node.weight,
        routable=node.routable and node.weight > 0,
        reason=node.reason or node.ejected or ("" if node.weight else "weight is 0"),
        in_flight=node.load.in_flight,
        drain_seconds=node.load.drain_seconds,
        lingering=node.lingering,
    )
    if node.load.status is not None:
        shown.status.CopyFrom(node.load.status)
        shown.status_age.CopyFrom(_duration(now - node.load.reported_at))
    return shown


def _duration(seconds: float) -> Duration:
    """As a message; what was never is shown as the longest that a century allows."""
    duration = Duration()
    duration.FromMicroseconds(int(min(seconds, 3.15e9) * 1e6))
    return duration
