"""Which version serves, and how another takes its place under traffic."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from braid.config.v1.config_pb2 import Group
from services.chassis.errors import LoadFailed, NotDrained, NothingLoaded, ServiceError
from services.chassis.process import StartFailure
from services.generation.lifecycle import Lifecycle, State, Stations
from services.generation.loading import LoadedModel
from services.generation.node_status import StatusBoard
from services.generation.reception import Reception
from services.generation.record import NodeRecord
from services.generation.types import VersionName
from services.generation.watchdog import Watchdog

log = structlog.get_logger()

FOREVER_S = 365 * 24 * 3600.0


class Loads(Protocol):
    """What brings a version to a warm engine."""

    async def load(self, name: VersionName, stations: Stations) -> LoadedModel:
        """See Loader.load."""
        ...


class Beside:
    """Stations of a version that is loaded beside the one that serves: reasons alone."""

    def __init__(self, name: VersionName, lifecycle: Lifecycle) -> None:
        self._name = name
        self._lifecycle = lifecycle

    def advance(self, state: State, reason: str = "") -> None:
        """Says so; the node's own state stays."""
        log.info("version_station", version=str(self._name), station=state.name)
        self.explain(reason or state.value)

    def explain(self, reason: str) -> None:
        """Says so."""
        self._lifecycle.explain(f"{self._name} is being loaded: {reason}")


class Residence:
    """The version that serves, and those on their way in or out.

    A version that cannot be loaded changes nothing but the reason that the node gives.
    ``on_refusal`` is told of it, ``on_change`` gets a version that has begun to serve.
    """

    def __init__(
        self,
        loader: Loads,
        lifecycle: Lifecycle,
        reception: Reception,
        board: StatusBoard,
        record: NodeRecord,
        tasks: asyncio.TaskGroup,
        watchdog_s: float,
        on_refusal: Callable[[], None] = lambda: None,
        on_change: Callable[[LoadedModel], None] = lambda _: None,
    ) -> None:
        self.current: LoadedModel | None = None
        self._loader = loader
        self._lifecycle = lifecycle
        self._reception = reception
        self._board = board
        self._record = record
        self._tasks = tasks
        self._watchdog_s = watchdog_s
        self._on_refusal = on_refusal
        self._on_change = on_change
        self._group = Group()
        self._changing = asyncio.Lock()
        self._guards: dict[int, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._resident: list[LoadedModel] = []

    def apply(self, group: Group) -> None:
        """Puts the group's limits into force for calls and steps from now on."""
        self._group = group
        if self.current is not None:
            limits = self.current.own_limits.under(group)
            self._reception.set_limits(limits)
            self.current.engine.set_limits(limits.for_engine())

    def install(self, loaded: LoadedModel) -> None:
        """Lets a version serve from now on."""
        limits = loaded.own_limits.under(self._group)
        loaded.engine.set_limits(limits.for_engine())
        served = replace(loaded.served, limits=limits)
        watchdog = Watchdog(
            loaded.engine, loaded.calls, self._lifecycle, self._reception, self._watchdog_s
        )
        self._resident.append(loaded)
        self.current, self._board.engine = loaded, loaded.engine
        self._record.served, self._lifecycle.unloaded = served, False
        self._reception.serve(served)
        self._guards[id(loaded)] = self._tasks.create_task(watchdog.run())
        self._on_change(loaded)

    async def serve(self, name: VersionName) -> None:
        """Loads a version beside the one that serves and puts it in its place.

        Returns once it serves; calls of the old one go on until they end. Raises
        LoadFailed, and the old one stays.
        """
        async with self._changing:
            old = self.current
            if old is not None and old.served.served_by.name == name:
                self._lifecycle.explain("")
                return
            loaded = await self._load(name)
            if old is not None:
                self._retire(old)
            self.install(loaded)
            serves = self._lifecycle.state is State.READY
            self._lifecycle.explain("" if serves else f"drained, with {name}")
            log.info("version_serves", version=str(name))

    async def unload(self, name: VersionName) -> None:
        """Frees the version. Raises NotDrained while the node serves, NothingLoaded for another."""
        async with self._changing:
            if self._lifecycle.state is not State.DRAINING:
                raise NotDrained("drain the node first: it serves this version")
            if self.current is None or self.current.served.served_by.name != name:
                raise NothingLoaded(f"{name} is not loaded")
            leaving = self._retire(self.current)
            self.current, self._board.engine, self._lifecycle.unloaded = None, None, True
            self._record.served = None
            self._reception.serve(None)
            await asyncio.shield(leaving)
            self._lifecycle.explain(f"{name} was unloaded")

    async def close(self) -> None:
        """Stops every engine."""
        for task in (*self._guards.values(), *self._leaving):
            task.cancel()
        for loaded in self._resident:
            await loaded.engine.stop()

    async def _load(self, name: VersionName) -> LoadedModel:
        try:
            return await self._loader.load(name, Beside(name, self._lifecycle))
        except (StartFailure, ServiceError) as error:
            reason = str(error)
        except Exception as error:
            log.exception("version_failed", exc_info=error)
            reason = type(error).__name__
        self._on_refusal()
        log.error("version_refused", alert=True, version=str(name), reason=reason)
        self._lifecycle.explain(f"{name} was refused: {reason}")
        raise LoadFailed(f"{name}: {reason}")

    def _retire(self, old: LoadedModel) -> asyncio.Task[None]:
        """Lets the calls of a version end, then frees it."""
        self._guards.pop(id(old)).cancel()
        task = self._tasks.create_task(self._leave(old))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def _leave(self, old: LoadedModel) -> None:
        await old.served.calls.idle(FOREVER_S)
        await old.engine.stop()
        self._resident.remove(old)
        log.info("version_freed", version=str(old.served.served_by.name))
        del old
        gc.collect()
