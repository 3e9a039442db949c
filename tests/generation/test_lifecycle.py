"""A worker's life: its stations, its readiness, its departure, an engine that hangs."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.config.v1.config_pb2 import Group
from services.chassis.errors import Draining, EngineStalled, NotReady, QueueFull
from services.generation.answering import Answering
from services.generation.departure import Departure
from services.generation.device_memory import DeviceMemory
from services.generation.engine import EngineStatus
from services.generation.lifecycle import Lifecycle, State, may_follow
from services.generation.limits import Limits
from services.generation.node_status import StatusBoard, StatusFeed
from services.generation.reception import Reception, ServedModel, TrackedEngine
from services.generation.types import Delta, Paradigm, ServedBy
from services.generation.watchdog import is_stalled
from tests.fakes.engine import ScriptedEngine, say
from tests.generation.requests import LIMITS, card, planner
from tests.generation.tiny import job

LIFE = (
    State.VERIFYING,
    State.LOADING,
    State.WARMING,
    State.READY,
    State.DRAINING,
    State.STOPPED,
)


def living(until: State) -> Lifecycle:
    """A lifecycle that has come as far as ``until``."""
    life = Lifecycle()
    for state in LIFE[: LIFE.index(until) + 1]:
        life.advance(state)
    return life


def served(limits: Limits = LIMITS) -> ServedModel:
    plans = planner()
    node = ServedBy("w", "g", "m", "v1", Paradigm.DIFFUSION)
    return ServedModel(node, card(), plans, Answering(ScriptedEngine(say("x")), plans), limits)


def test_whole_life_is_legal() -> None:
    """From FETCHING to STOPPED each station follows the one before."""
    assert living(State.STOPPED).state is State.STOPPED


@given(st.sampled_from(State), st.sampled_from(State))
def test_no_station_is_skipped(state: State, after: State) -> None:
    """READY comes after WARMING or a drain, and nothing comes after STOPPED."""
    if after is State.READY:
        assert may_follow(state, after) is (state in (State.WARMING, State.DRAINING))
    if after is State.DRAINING:
        assert may_follow(state, after) is (state is State.READY)
    if state is State.STOPPED:
        assert not may_follow(state, after)


def test_illegal_station_is_an_error() -> None:
    """A node cannot be READY before it has loaded."""
    with pytest.raises(ValueError, match="READY cannot follow FETCHING"):
        Lifecycle().advance(State.READY)


def test_every_change_is_told() -> None:
    """Watchers hear of each station and each reason."""
    life, heard = Lifecycle(), list[tuple[State, str]]()
    life.watch(lambda: heard.append((life.state, life.reason)))
    life.explain("waiting")
    life.explain("waiting")
    life.advance(State.VERIFYING)
    life.advance(State.FAILED, "broken")
    assert heard == [
        (State.FETCHING, "waiting"),
        (State.VERIFYING, ""),
        (State.FAILED, "broken"),
    ]


@pytest.mark.parametrize(
    ("state", "flags"),
    [
        (State.WARMING, (False, True, False)),
        (State.READY, (True, True, True)),
        (State.DRAINING, (True, True, False)),
        (State.STOPPED, (False, True, False)),
    ],
)
def test_three_flags(state: State, flags: tuple[bool, bool, bool]) -> None:
    """model_loaded, memory_ok and accepting are reported apart."""
    readiness = StatusBoard(living(state), DeviceMemory("cpu")).readiness()
    assert (readiness.model_loaded, readiness.memory_ok, readiness.accepting) == flags
    assert readiness.ready is all(flags)


def test_memory_over_its_limit_is_not_ready() -> None:
    """More resident memory than the limit turns memory_ok off, and only that."""
    readiness = StatusBoard(living(State.READY), DeviceMemory("cpu", 1)).readiness()
    assert (readiness.model_loaded, readiness.memory_ok, readiness.accepting) == (True, False, True)
    status = StatusBoard(living(State.READY), DeviceMemory("cpu", 1)).status()
    assert status.memory_bytes > status.memory_limit_bytes == 1


def test_reception_refuses_until_open() -> None:
    """Before READY calls are refused as not ready; afterwards they get the model."""
    reception = Reception()
    with pytest.raises(NotReady), reception.admitted():
        pass
    reception.serve(served())
    reception.admit()
    with reception.admitted() as model:
        assert model.served_by.node_id == "w"
    assert reception.calls.count == 0


def test_concurrency_is_bounded() -> None:
    """A call beyond max_concurrency is refused at once, with a time to come again."""
    reception = Reception()
    reception.serve(served(LIMITS.under(Group(max_concurrency=1))))
    reception.admit()
    with reception.admitted():
        with pytest.raises(QueueFull) as caught, reception.admitted():
            pass
        assert caught.value.retry_after_s
    with reception.admitted():
        pass


class Registrar:
    """Notes when the record was taken away, and what the node said then."""

    def __init__(self, life: Lifecycle, reception: Reception) -> None:
        self._life, self._reception = life, reception
        self.seen: list[tuple[State, bool]] = []

    async def withdraw(self) -> None:
        """Takes the record away."""
        self.seen.append((self._life.state, self._reception.open))


async def test_departure_is_told_withdrawn_then_closed() -> None:
    """DRAINING is said first, then the record goes, and only then are calls refused."""
    life, reception, feed = living(State.READY), Reception(), StatusFeed()
    reception.serve(served())
    reception.admit()
    departure = Departure(life, reception, feed, grace_s=5)
    registrar = Registrar(life, reception)
    departure.registration = registrar
    assert await departure.drain("test")
    assert registrar.seen == [(State.DRAINING, True)]
    with pytest.raises(Draining), reception.admitted():
        pass


async def test_departure_waits_for_calls_within_its_grace() -> None:
    """A drain answers when the last call has gone, or says that the grace passed."""
    life, reception = living(State.READY), Reception()
    reception.serve(served())
    reception.admit()
    departure = Departure(life, reception, StatusFeed(), grace_s=0.05)
    with reception.admitted():
        assert not await departure.drain("test")
        later = asyncio.create_task(departure.drain("test", 5))
        await asyncio.sleep(0)
    assert await later


async def test_a_drained_node_comes_back() -> None:
    """Resume takes calls again; a node that stops for good refuses it."""
    life, reception = living(State.READY), Reception()
    reception.serve(served())
    reception.admit()
    departure = Departure(life, reception, StatusFeed(), grace_s=5)
    await departure.drain("test")
    await departure.resume()
    await departure.resumed()
    assert (life.state, reception.open) == (State.READY, True)
    await departure.leave_for_good("test")
    with pytest.raises(Draining):
        await departure.resume()
    assert life.state is State.DRAINING


def test_what_was_said_before_a_stall_is_said_after_it() -> None:
    """A reason that stands is hidden by a stall, and comes back."""
    life = living(State.READY)
    life.explain("v2 was refused")
    life.stall("no step for 30 s")
    assert life.reason == "no step for 30 s"
    life.recover()
    assert life.reason == "v2 was refused"


async def test_streams_are_told_before_the_record_goes() -> None:
    """Departure waits until each status stream has sent what changed."""
    feed = StatusFeed()
    with feed.watching() as watcher:
        watcher.sending()
        watcher.sent()
        await feed.told(5)
        feed.touch()
        telling = asyncio.create_task(feed.told(5))
        await asyncio.sleep(0)
        assert not telling.done()
        watcher.sending()
        watcher.sent()
        await telling


def load(*, busy: bool, last_step_at: float) -> EngineStatus:
    return EngineStatus(1, 0, 1, 0.1, 4, busy, last_step_at, False)


def test_busy_engine_without_steps_is_stalled() -> None:
    """Only an engine with work to do and no step for too long is stalled."""
    now = time.monotonic()
    assert is_stalled(load(busy=True, last_step_at=now - 31), now, 30)
    assert not is_stalled(load(busy=True, last_step_at=now - 29), now, 30)
    assert not is_stalled(load(busy=False, last_step_at=now - 99), now, 30)


async def test_failing_all_ends_every_open_stream() -> None:
    """Streams that are open end with the error, and their jobs are given up."""
    engine = ScriptedEngine(lambda _: [Delta("a")])
    tracked = TrackedEngine(engine)
    stream, finished = tracked.submit(job()), ScriptedEngine(say("x")).submit(job())
    assert await anext(stream) == Delta("a")
    tracked.fail_all(EngineStalled("stuck"))
    with pytest.raises(EngineStalled):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert engine.given_up == engine.jobs
    assert await anext(finished)
