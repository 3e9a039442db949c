"""The router's process: ``braid-router``."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from dataclasses import dataclass
from random import Random

import structlog

from braid.routing.v1 import routing_pb2, routing_pb2_grpc
from services.chassis import keys
from services.chassis.metrics import new_registry
from services.chassis.mirror import Mirror
from services.chassis.ops import OpsServer, Readiness
from services.chassis.process import Stop, run_service
from services.chassis.registration import Registration
from services.chassis.registry import Registry
from services.chassis.security.tls import Tls, dial_of, server_credentials_of
from services.chassis.server import RpcServer, ServiceEntry
from services.router.admission import Admission
from services.router.dispatch import Dispatcher, Ways
from services.router.ejection import Ejections
from services.router.group_metrics import GroupMetrics
from services.router.guard import Guard
from services.router.links import SERVICE, Links
from services.router.live_table import LiveTable
from services.router.metrics import RouterMetrics
from services.router.mirroring import Mirroring
from services.router.node_watch import NodeWatches
from services.router.passage import Journal
from services.router.proxy import InferenceProxy, add_proxy
from services.router.record import record_of
from services.router.retry_budget import RetryBudget
from services.router.servicer import RouterServicer, View
from services.router.settings import RouterSettings
from services.router.table_metrics import TableMetrics
from services.router.traffic_figures import TrafficFigures

ADMIN_SERVICE = "braid.routing.v1.RouterService"
FIRST_STATUSES_S = 2.0
"""Longest wait for the nodes' first statuses before the router calls itself ready."""

log = structlog.get_logger()


class Router:
    """One router, put together: what it knows and its three ports."""

    def __init__(
        self, settings: RouterSettings, registry: Registry, tasks: asyncio.TaskGroup, stop: Stop
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._tasks = tasks
        self._stop = stop
        self._tls = Tls.of(settings)
        self._links = links = Links(tasks, dial_of(self._tls))
        metrics, rng = new_registry("router"), Random()
        self._live = LiveTable(NodeWatches(tasks, links), links)
        self._mirror = Mirror(registry, keys.ROOT, settings.snapshot_path)
        self._mirror.subscribe(self._live.apply)
        TableMetrics(self._live, self._mirror, metrics)
        counts, later = RouterMetrics(metrics), asyncio.get_running_loop().call_later
        self._ejections = Ejections(self._live, counts.ejected, later)
        self._live.subscribe(self._ejections.review)
        admission = Admission(self._live, counts, rng, settings.queue_length)
        self._live.subscribe(admission.review)
        GroupMetrics(self._live, admission, metrics)
        self._mirroring = Mirroring(tasks, self._live, links, admission, counts, rng)
        ways = Ways(
            tables=self._live,
            links=links,
            admission=admission,
            ejections=self._ejections,
            budget=RetryBudget(),
            mirroring=self._mirroring,
            metrics=counts,
            rng=rng,
        )
        dispatcher, traffic = Dispatcher(ways, settings.default_deadline_s), TrafficFigures()
        guard = Guard(settings, self._live, self._mirror, metrics)
        journal = Journal(counts, self._live, traffic)
        proxy = InferenceProxy(dispatcher, journal, guard.door)
        comparisons = self._mirroring.comparisons
        view = View(self._live, self._mirror, admission, traffic, comparisons)
        servicer = RouterServicer(view, proxy.smoke, rng)
        add = routing_pb2_grpc.add_RouterServiceServicer_to_server
        self._inference = RpcServer(
            f"{settings.host}:{settings.port}",
            [ServiceEntry(SERVICE, add_proxy, proxy)],
            credentials=server_credentials_of(self._tls),
        )
        self._admin = RpcServer(
            f"{settings.host}:{settings.admin_port}",
            [ServiceEntry(ADMIN_SERVICE, add, servicer)],
            channelz=True,
            interceptors=guard.interceptors,
            credentials=server_credentials_of(self._tls),
        )
        self._ops = OpsServer(settings.host, settings.ops_port, self._readiness, metrics)

    async def run(self) -> None:
        """Serves until the stop, then drains."""
        ports = Ports(
            await self._inference.start(), await self._admin.start(), await self._ops.start()
        )
        router = self._router(ports)
        key = keys.router_key(router.node_id)
        own = Registration(self._registry, key, record_of(router), self._settings.lease_ttl_s)
        following = self._tasks.create_task(self._mirror.run())
        opening = self._tasks.create_task(self._open())
        renewing = self._tasks.create_task(self._follow_certificates())
        self._tasks.create_task(own.run())
        log.info("router_started", port=ports.inference, admin=ports.admin, ops=ports.ops)
        await self._stop.wait()
        await self._drain(own)
        opening.cancel()
        following.cancel()
        self._mirroring.close()
        self._ejections.close()
        renewing.cancel()
        self._live.close()

    async def _drain(self, own: Registration) -> None:
        """Leaves the registry, lets running calls finish and closes the ports."""
        log.info("router_draining", in_flight=self._inference.calls.count)
        withdrawing = self._tasks.create_task(own.withdraw())
        finished = await self._inference.stop(self._settings.grace_s)
        await withdrawing
        await self._admin.stop(0)
        await self._ops.stop()
        log.info("router_stopped", every_call_finished=finished)

    async def _open(self) -> None:
        """Turns healthy once there is a table, and its nodes had a moment to be seen."""
        await self._mirror.ready()
        await self._live.settled(FIRST_STATUSES_S)
        _settle_objects()
        await self._inference.set_serving(True)
        await self._admin.set_serving(True)
        log.info("router_ready", revision=self._live.table.revision)

    async def _follow_certificates(self) -> None:
        if self._tls:
            await self._tls.follow(self._links.renew)

    def _router(self, ports: Ports) -> routing_pb2.Router:
        host = self._settings.reachable_host
        return routing_pb2.Router(
            node_id=self._settings.own_id,
            address=f"{host}:{ports.inference}",
            admin_address=f"{host}:{ports.admin}",
            ops_address=f"{host}:{ports.ops}",
        )

    def _readiness(self) -> Readiness:
        """There is no model and no memory limit here; ``accepting``: there is a table."""
        loaded = self._live.loaded
        return Readiness(
            model_loaded=True,
            memory_ok=True,
            accepting=loaded and not self._stop.requested,
            reason="" if loaded else "the registry has not answered yet",
        )


def _settle_objects() -> None:
    """Leaves what is there by now out of garbage collection, and collects less often.

    Going through every module and the whole table again and again would take a
    tenth of a call's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a router listens."""

    inference: int
    admin: int
    ops: int


async def serve(settings: RouterSettings, stop: Stop) -> None:
    """Runs one router until ``stop``."""
    async with Registry(settings) as registry, asyncio.TaskGroup() as tasks:
        await Router(settings, registry, tasks, stop).run()


def main() -> None:
    """Console entry point."""
    sys.exit(run_service("braid-router", RouterSettings, serve, sys.argv[1:], dict(os.environ)))


if __name__ == "__main__":
    main()
