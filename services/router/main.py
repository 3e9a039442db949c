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
from services.router.fleet import Fleet
from services.router.guard import Guard
from services.router.inference import Bounds, Inference
from services.router.links import SERVICE, Links
from services.router.live_table import LiveTable
from services.router.node_watch import NodeWatches
from services.router.proxy import add_proxy
from services.router.record import record_of
from services.router.servicer import RouterServicer, View
from services.router.settings import RouterSettings
from services.router.table_metrics import TableMetrics

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
        guard = Guard(settings, self._live, self._mirror, metrics)
        bounds = Bounds(settings.default_deadline_s, settings.queue_length)
        inference = Inference(self._live, links, tasks, metrics, guard.door, bounds, rng)
        self._live.subscribe(inference.review)
        self._calls = inference
        view = View(
            self._live,
            self._mirror,
            inference.admission,
            inference.traffic,
            inference.mirroring.comparisons,
        )
        servicer = RouterServicer(view, inference.proxy.smoke, rng)
        add = routing_pb2_grpc.add_RouterServiceServicer_to_server
        self._inference = RpcServer(
            f"{settings.host}:{settings.port}",
            [ServiceEntry(SERVICE, add_proxy, inference.proxy)],
            credentials=server_credentials_of(self._tls),
            shared=settings.port_shared,
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
        port = await self._listen()
        ports = Ports(port, await self._admin.start(), await self._ops.start())
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
        self._calls.close()
        renewing.cancel()
        self._live.close()

    async def _listen(self) -> int:
        """Listens for calls at once, unless others on the port can take them meanwhile."""
        return self._settings.port if self._settings.port_shared else await self._inference.start()

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
        if self._settings.port_shared:
            await self._inference.start()
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
    """Console entry point; ``--processes N`` is BRAID_PROCESSES in short."""
    arguments, environ = sys.argv[1:], dict(os.environ)
    if len(arguments) == 2 and arguments[0] == "--processes":
        environ[RouterSettings.variable("processes")] = arguments.pop()
        arguments.clear()

    async def serve_all(settings: RouterSettings, stop: Stop) -> None:
        if settings.processes > 1:
            await Fleet(settings, environ).run(stop)
        else:
            await serve(settings, stop)

    sys.exit(run_service("braid-router", RouterSettings, serve_all, arguments, environ))


if __name__ == "__main__":
    main()
