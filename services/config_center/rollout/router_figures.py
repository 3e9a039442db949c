"""Figures of all routers, and smoke tests through one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import grpc
import grpc.aio
from google.protobuf.duration_pb2 import Duration

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from braid.routing.v1.routing_pb2_grpc import RouterServiceStub
from braid.worker.v1 import worker_pb2
from services.chassis import documents, keys
from services.chassis.registry import Registry
from services.chassis.security.keyed_channel import keyed
from services.config_center.rollout.steps import SMOKE, Figures

Dial = Callable[[str], grpc.aio.Channel]

FAULTS = frozenset(
    {"UNKNOWN", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "DEADLINE_EXCEEDED", "UNIMPLEMENTED"}
)
"""Codes that speak against the version; the others are the caller's doing, or load."""

_SLOT_S = 10
_LONGEST_S = 600
_TIMEOUT_S = 5.0
_SMOKE_TIMEOUT_S = 30.0


class RouterFigures:
    """Asks the routers that are registered."""

    def __init__(self, registry: Registry, dial: Dial, operator_key: str = "") -> None:
        self._registry = registry
        self._dial = dial
        self._operator_key = operator_key

    def _stub(self, channel: grpc.aio.Channel) -> RouterServiceStub:
        key = self._operator_key
        return RouterServiceStub(keyed(channel, key) if key else channel)

    async def figures(self, rollout: config_pb2.Rollout, now_s: float) -> Figures:
        """Of both versions since the step began, and the smoke tests where they are due."""
        routers = await self._routers()
        since_s = now_s - rollout.step_started.ToNanoseconds() / 1e9
        window = Duration(seconds=min(max(int(since_s), _SLOT_S), _LONGEST_S))
        request = routing_pb2.GetTrafficRequest(model=rollout.model, window=window)
        answers = await asyncio.gather(*(self._traffic(it, request) for it in routers))
        seen = [version for answer in answers for version in answer]
        smoke = None
        if rollout.state == SMOKE:
            smoke = await self._smoke(rollout.model, rollout.candidate, rollout.plan.smoke, routers)
        return Figures(
            sample(it for it in seen if it.version == rollout.candidate),
            sample(it for it in seen if it.version == rollout.stable),
            smoke,
        )

    async def _routers(self) -> list[str]:
        listing = await self._registry.list(keys.ROUTERS)
        found = []
        for key, entry in sorted(listing.entries.items()):
            try:
                record = documents.parse(key, entry.value, routing_pb2.Router)
            except ValueError:
                continue
            found.append(record.admin_address)
        return found

    async def _traffic(
        self, router: str, request: routing_pb2.GetTrafficRequest
    ) -> Sequence[routing_pb2.VersionTraffic]:
        """Nothing from a router that does not answer: it counts neither version's calls."""
        try:
            async with self._dial(router) as channel:
                answer = await self._stub(channel).GetTraffic(request, timeout=_TIMEOUT_S)
                return tuple(answer.versions)
        except grpc.aio.AioRpcError:
            return ()

    async def probe(self, model: str, version: str) -> str:
        """Why the version would not serve: asks each of its nodes by a short prompt."""
        fault = await self._smoke(model, version, (), await self._routers())
        return "no router answers" if fault is None else fault

    async def _smoke(
        self,
        model: str,
        version: str,
        tests: Sequence[config_pb2.SmokeRequest],
        routers: Sequence[str],
    ) -> str | None:
        nodes = await self._nodes(model, version)
        if not nodes:
            return f"no node serves {version}"
        if not routers:
            return None
        async with self._dial(routers[0]) as channel:
            for node in nodes:
                for test in tests or (config_pb2.SmokeRequest(),):
                    if fault := await _ask(self._stub(channel), node, test):
                        return f"{node}: {fault}"
        return ""

    async def _nodes(self, model: str, version: str) -> list[str]:
        listing = await self._registry.list(keys.NODES)
        found = []
        for key, entry in sorted(listing.entries.items()):
            try:
                record = documents.parse(key, entry.value, worker_pb2.Node)
            except ValueError:
                continue
            if (record.model, record.version) == (model, version):
                found.append(record.node_id)
        return found


async def _ask(stub: RouterServiceStub, node: str, test: config_pb2.SmokeRequest) -> str:
    """Why the node did not pass, without what it said; empty where it did."""
    request = routing_pb2.SmokeTestRequest(node_id=node)
    if test.HasField("request"):
        request.request.CopyFrom(test.request)
    try:
        answer = await stub.SmokeTest(request, timeout=_SMOKE_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        return error.code().name
    if answer.response.served_by.node_id != node:
        return "another node answered"
    if test.answer and answer.response.text != test.answer:
        return "a smoke test got another answer than it should"
    return ""


def sample(parts: Iterable[routing_pb2.VersionTraffic]) -> config_pb2.VersionSample:
    """One version's figures at several routers as one.

    The 95th percentile is the routers' mean, weighted by calls: theirs cannot be merged
    exactly, and both versions are treated alike.
    """
    whole, weighted = config_pb2.VersionSample(), 0.0
    for part in parts:
        whole.count += part.count
        whole.errors += sum(count for code, count in part.errors.items() if code in FAULTS)
        whole.judged += part.judged
        whole.invalid += part.judged - round(part.judged * part.valid_share)
        weighted += part.count * part.p95.ToNanoseconds() / 1e9
    whole.p95_seconds = weighted / whole.count if whole.count else 0.0
    return whole
