"""Versions that come and go in one worker: one takes another's place, or nothing changes."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from braid.config.v1.config_pb2 import Group
from services.chassis.errors import LoadFailed, NotDrained, NothingLoaded
from services.chassis.process import StartFailure
from services.generation.answering import Answering
from services.generation.device_memory import DeviceMemory
from services.generation.engine import Engine, EngineLimits
from services.generation.lifecycle import State, Stations
from services.generation.loading import LoadedModel
from services.generation.node_status import StatusBoard
from services.generation.reception import Reception, ServedModel, TrackedEngine
from services.generation.record import NodeRecord
from services.generation.residence import Beside, Residence
from services.generation.settings import WorkerSettings
from services.generation.succession import Succession
from services.generation.types import Paradigm, ServedBy, VersionName
from tests.eventually import eventually
from tests.generation.engines import DIFFUSION, ENDLESS, WatchedModel, collect
from tests.generation.requests import LIMITS, card, planner
from tests.generation.test_lifecycle import living
from tests.generation.tiny import job

V1, V2, BROKEN = (VersionName("m", version) for version in ("v1", "v2", "broken"))


class Shelf:
    """Brings tiny engines, and one version that nobody can have."""

    def __init__(self) -> None:
        self.asked: list[VersionName] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def load(self, name: VersionName, stations: Stations) -> LoadedModel:
        """An engine at once."""
        self.asked.append(name)
        stations.advance(State.LOADING)
        await self.gate.wait()
        if name == BROKEN:
            raise StartFailure("model.safetensors: sha256 is wrong")
        engine = Engine(WatchedModel(), DIFFUSION, ENDLESS, EngineLimits())
        engine.start()
        calls, plans = TrackedEngine(engine), planner()
        node = ServedBy("w", "g", name.model, name.version, Paradigm.DIFFUSION)
        served = ServedModel(node, card(), plans, Answering(calls, plans), LIMITS)
        return LoadedModel(served, engine, calls, engine._model.expert_load)


class House:
    """A residence with v1 in it, and everything it talks to."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.shelf, self.life, self.reception = Shelf(), living(State.READY), Reception()
        self.refusals = 0
        settings = WorkerSettings(group="g", model="m", version="v1")
        self.record = NodeRecord(settings, "w", Paradigm.DIFFUSION)
        board = StatusBoard(self.life, DeviceMemory("cpu"))
        self.residence = Residence(
            self.shelf,
            self.life,
            self.reception,
            board,
            self.record,
            tasks,
            watchdog_s=30,
            on_refusal=self._refused,
        )

    @property
    def serves(self) -> VersionName | None:
        """What a call that comes now gets."""
        return self.reception.model.served_by.name if self.reception.model else None

    def _refused(self) -> None:
        self.refusals += 1


@asynccontextmanager
async def house() -> AsyncIterator[House]:
    """A house that is closed at the end."""
    async with asyncio.TaskGroup() as tasks:
        built = House(tasks)
        built.residence.install(await built.shelf.load(V1, Beside(V1, built.life)))
        built.reception.admit()
        try:
            yield built
        finally:
            await built.residence.close()


async def test_a_new_version_takes_over_while_calls_of_the_old_go_on() -> None:
    """New calls get v2 at once; v1 is freed when its last call has gone, not before."""
    async with house() as here:
        assert here.residence.current
        old = here.residence.current.engine
        with here.reception.admitted() as model:
            await here.residence.serve(V2)
            assert (model.served_by.name, here.serves) == (V1, V2)
            assert here.record.node().version == "v2"
            assert await collect(old, job(max_new_tokens=4))
        await eventually(lambda: old.snapshot().draining)
        assert here.life.state is State.READY
        assert here.life.reason == ""


async def test_the_old_version_leaves_no_memory() -> None:
    """Nothing holds the weights of a version that has gone."""
    async with house() as here:
        assert here.residence.current
        model = weakref.ref(here.residence.current.engine._model)
        await here.residence.serve(V2)
        await eventually(lambda: gc.collect() >= 0 and model() is None)


async def test_a_refused_version_changes_nothing_but_the_reason() -> None:
    """v1 serves on, the node says why, and the next good version clears it."""
    async with house() as here:
        with pytest.raises(LoadFailed, match="sha256"):
            await here.residence.serve(BROKEN)
        assert (here.serves, here.refusals, here.life.state) == (V1, 1, State.READY)
        assert here.life.reason == "m broken was refused: model.safetensors: sha256 is wrong"
        await here.residence.serve(V2)
        assert (here.serves, here.life.reason) == (V2, "")


async def test_the_groups_limits_hold_for_the_next_version_too() -> None:
    """What the group says now counts under v2, and what it no longer says does not."""
    async with house() as here:
        here.residence.apply(Group(max_new_tokens=5))
        await here.residence.serve(V2)
        assert here.reception.model
        assert here.reception.model.limits.max_new_tokens == 5
        here.residence.apply(Group())
        assert here.reception.model.limits == LIMITS


async def test_only_a_drained_node_gives_its_version_up() -> None:
    """Unloading needs a drain and the right name; loading brings a version back."""
    async with house() as here:
        with pytest.raises(NotDrained):
            await here.residence.unload(V1)
        here.life.advance(State.DRAINING)
        with pytest.raises(NothingLoaded):
            await here.residence.unload(V2)
        await here.residence.unload(V1)
        assert (here.serves, here.life.model_loaded) == (None, False)
        await here.residence.serve(V1)
        assert (here.serves, here.life.model_loaded) == (V1, True)
        assert here.life.state is State.DRAINING


async def test_an_unloaded_version_leaves_no_memory() -> None:
    """Nothing of a node that gave its version up holds the weights."""
    async with house() as here:
        assert here.residence.current
        model = weakref.ref(here.residence.current.engine._model)
        here.life.advance(State.DRAINING)
        await here.residence.unload(V1)
        await eventually(lambda: gc.collect() >= 0 and model() is None)


async def test_the_newest_wish_counts() -> None:
    """Wishes that came while a version was loading are skipped but for the last."""
    async with house() as here, asyncio.TaskGroup() as tasks:
        succession = Succession(here.residence)
        following = tasks.create_task(succession.run())
        here.shelf.gate.clear()
        succession.want(BROKEN)
        await eventually(lambda: BROKEN in here.shelf.asked)
        for name in (V1, BROKEN, V2):
            succession.want(name)
        here.shelf.gate.set()
        await eventually(lambda: here.serves == V2)
        following.cancel()
    assert here.shelf.asked == [V1, BROKEN, V2]
