"""The composition root of a worker: every part made once, handed to those who need it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import asdict

import structlog
from prometheus_client import CollectorRegistry

from braid.config.v1.config_pb2 import Group
from braid.inference.v1 import inference_pb2_grpc
from braid.worker.v1 import worker_pb2_grpc
from services.chassis.errors import NotReady
from services.chassis.keys import node_key
from services.chassis.log import set_level
from services.chassis.metrics import new_registry
from services.chassis.ops import OpsServer
from services.chassis.process import Stop
from services.chassis.registration import KeyTaken, Registration
from services.chassis.registry import Registry
from services.chassis.security.admin_guard import AdminGuard
from services.chassis.security.tls import Tls, server_credentials_of
from services.chassis.server import RpcServer, ServiceEntry
from services.generation.departure import Departure
from services.generation.device_memory import DeviceMemory
from services.generation.group import FollowedGroup, version_of
from services.generation.kind import Kind
from services.generation.lifecycle import Lifecycle, State
from services.generation.loading import LoadedModel, Loader, reason_of_failure
from services.generation.metrics import WorkerMetrics
from services.generation.node_status import StatusBoard, StatusFeed
from services.generation.ports import Ports
from services.generation.reception import Reception
from services.generation.record import NodeRecord
from services.generation.residence import Residence
from services.generation.servicer import InferenceServicer
from services.generation.settings import WorkerSettings
from services.generation.succession import Succession
from services.generation.worker_servicer import WorkerServicer

INFERENCE = "braid.inference.v1.InferenceService"
MANAGEMENT = "braid.worker.v1.WorkerService"
SWITCH_S = 0.0005
"""Longest time that the engine's thread keeps the interpreter from the event loop: a deadline is
a matter of a few milliseconds."""
READ_ONLY = frozenset(f"/{MANAGEMENT}/{method}" for method in ("Describe", "WatchStatus"))
"""What routers ask of a worker, and whoever else can connect may see."""

LAST_WORDS_S = 0.5
"""Longest wait for status streams to tell the end, and for ended calls to leave."""

log = structlog.get_logger()


async def run_worker(settings: WorkerSettings, stop: Stop, kind: Kind) -> None:
    """Runs one worker until ``stop``: loads, serves, drains.

    Raises StartFailure, PortInUse or KeyTaken where it cannot serve.
    """
    sys.setswitchinterval(SWITCH_S)
    await Worker(settings, kind).run(stop)


class Worker:
    """The parts of one worker process."""

    def __init__(self, settings: WorkerSettings, kind: Kind) -> None:
        self._settings = settings
        self._kind = kind
        self._node_id = settings.own_id
        self._lifecycle = Lifecycle()
        self._feed = StatusFeed()
        self._reception = Reception(self._feed.touch)
        self._memory = DeviceMemory(
            settings.device, settings.memory_limit_bytes, settings.memory_fraction
        )
        self._board = StatusBoard(self._lifecycle, self._memory)
        self._departure = Departure(self._lifecycle, self._reception, self._feed, settings.grace_s)
        self._record = NodeRecord(settings, self._node_id, kind.paradigm)
        registry = new_registry(kind.name)
        self._metrics = WorkerMetrics(registry)
        self._metrics.follow(self._lifecycle, self._board)
        self._refresh: Callable[[], None] = lambda: None
        self._management = WorkerServicer(
            self._record, self._reception, self._board, self._feed, self._departure
        )
        self._guard = AdminGuard(settings, registry, READ_ONLY)
        self._ports = self._make_ports(registry)
        self._lifecycle.watch(self._feed.touch)

    async def run(self, stop: Stop) -> None:
        """From the first port to the last; see run_worker."""
        settings = self._settings
        async with self._ports.listening(settings.reachable_host) as addresses:
            self._record.addresses = addresses
            log.info("worker_started", node_id=self._node_id, **asdict(addresses))
            try:
                async with Registry(settings) as registry, asyncio.TaskGroup() as tasks:
                    health = tasks.create_task(self._follow_health())
                    guarding = tasks.create_task(self._guard.follow(registry))
                    await self._live(registry, tasks, stop)
                    health.cancel()
                    guarding.cancel()
            finally:
                await self._feed.told(LAST_WORDS_S)
        log.info("worker_stopped", node_id=self._node_id)

    async def _live(self, registry: Registry, tasks: asyncio.TaskGroup, stop: Stop) -> None:
        loader = Loader(
            registry, self._settings, self._kind, self._node_id, self._metrics, self._memory
        )
        loading = tasks.create_task(self._load(loader))
        stopping = tasks.create_task(stop.wait())
        await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if loading.done():
                await self._serve(registry, loader, loading.result(), stop)
            else:
                loading.cancel()
        finally:
            loader.close()
        stopping.cancel()
        self._lifecycle.advance(State.STOPPED)

    async def _load(self, loader: Loader) -> LoadedModel:
        """The version that the node starts with; it fails with it."""
        try:
            return await loader.load(self._settings.name, self._lifecycle)
        except Exception as error:
            self._lifecycle.advance(State.FAILED, reason_of_failure(error))
            raise

    async def _serve(
        self, registry: Registry, loader: Loader, loaded: LoadedModel, stop: Stop
    ) -> None:
        """Serves from READY to the last call, then stops the engines."""
        async with asyncio.TaskGroup() as tasks:
            residence = self._residence(loader, tasks)
            try:
                residence.install(loaded)
                lasting = self._start_lasting(registry, residence, tasks)
                self._management.residence = residence
                self._lifecycle.advance(State.READY)
                self._reception.admit()
                await stop.wait()
                finished = await self._departure.leave_for_good("stopping")
                log.info("drained", finished=finished, running=self._reception.calls.count)
                for task in lasting:
                    task.cancel()
            finally:
                await residence.close()
                await self._reception.calls.idle(LAST_WORDS_S)

    def _residence(self, loader: Loader, tasks: asyncio.TaskGroup) -> Residence:
        return Residence(
            loader,
            self._lifecycle,
            self._reception,
            self._board,
            self._record,
            tasks,
            self._settings.watchdog_s,
            on_refusal=self._metrics.refused_versions.inc,
            on_change=self._changed,
        )

    def _changed(self, loaded: LoadedModel) -> None:
        """Another version serves."""
        self._metrics.follow_experts(loaded.expert_load)
        self._refresh()

    def _start_lasting(
        self, registry: Registry, residence: Residence, tasks: asyncio.TaskGroup
    ) -> list[asyncio.Task[None]]:
        """What runs beside the calls: registration, the group's record and what it asks for."""
        settings, succession = self._settings, Succession(residence)

        def apply(group: Group) -> None:
            set_level(group.log_level or settings.log_level)
            residence.apply(group)
            succession.want(version_of(group, settings.name))

        followed = FollowedGroup(registry, settings.group, apply)
        self._metrics.group_valid.set_function(lambda: float(followed.valid))
        work = (self._keep_registered(registry), followed.run(), succession.run())
        return [tasks.create_task(coroutine) for coroutine in work]

    async def _keep_registered(self, registry: Registry) -> None:
        """In the registry for as long as the node is in service, again and again."""
        settings = self._settings
        key = node_key(settings.group, self._node_id)
        while True:
            registration = Registration(registry, key, self._record.value, settings.lease_ttl_s)
            self._departure.registration = registration
            self._refresh = registration.refresh
            try:
                await registration.run()
            except KeyTaken as error:
                self._reception.refuse(NotReady("another node has this node's id"))
                self._lifecycle.advance(State.FAILED, error.message)
                raise
            await self._departure.resumed()

    async def _follow_health(self) -> None:
        """gRPC health of the inference port says what readiness says."""
        changed = asyncio.Event()
        self._lifecycle.watch(changed.set)
        while True:
            await self._ports.inference.set_serving(self._lifecycle.accepting)
            await changed.wait()
            changed.clear()

    def _make_ports(self, registry: CollectorRegistry) -> Ports:
        settings, tls = self._settings, Tls.of(self._settings)
        inference = InferenceServicer(self._reception, self._metrics, settings.call_timeout_s)
        add_inference = inference_pb2_grpc.add_InferenceServiceServicer_to_server
        add_management = worker_pb2_grpc.add_WorkerServiceServicer_to_server
        lasting = frozenset({"WatchStatus"})
        return Ports(
            RpcServer(
                f"{settings.host}:{settings.port}",
                [ServiceEntry(INFERENCE, add_inference, inference)],
                credentials=server_credentials_of(tls),
            ),
            RpcServer(
                f"{settings.host}:{settings.admin_port}",
                [ServiceEntry(MANAGEMENT, add_management, self._management, lasting)],
                channelz=True,
                interceptors=self._guard.interceptors,
                credentials=server_credentials_of(tls),
            ),
            OpsServer(settings.host, settings.ops_port, self._board.readiness, registry),
        )
