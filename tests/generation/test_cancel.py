"""Readers that give up, by the hundred: slots come back at once and nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter

import pytest

from services.ar_worker.sequence import TokenSequence
from services.diffusion_worker.sequence import BlockSequence
from services.generation.engine import Engine, EngineLimits, EventStream
from services.generation.run import Run
from services.generation.sequence import Family
from services.generation.ticket import Ticket
from services.generation.types import Job
from tests.eventually import eventually
from tests.generation.engines import DIFFUSION, NEXT_TOKEN, WatchedModel, collect, running
from tests.generation.tiny import job, prompt

SLOTS = 8
LIMITS = EngineLimits(queue_length=200)
FAMILIES = pytest.mark.parametrize("family", [DIFFUSION, NEXT_TOKEN], ids=["diffusion", "ar"])
PER_REQUEST = (Run, Ticket, EventStream, BlockSequence, TokenSequence)


def held(engine: Engine) -> tuple[int, ...]:
    """What the engine keeps for requests: runs, waiting and open ones, slots that are taken."""
    status = engine.snapshot()
    free = len(engine._loop._free_slots)
    return status.running, status.queued, len(engine._open), SLOTS - free


async def give_up(engine: Engine, asked: Job, events: int) -> None:
    """Reads so many events, then leaves; at once where that is none."""
    async with engine.submit(asked) as stream:
        for _ in range(events):
            await anext(stream)


async def give_up_waves(engine: Engine, waves: int) -> None:
    """50 a wave: in line, before the first forward, between blocks and while a reader waits."""
    for wave in range(waves):
        readers = [
            asyncio.create_task(give_up(engine, job(prompt(5 + n % 7), 40, seed=n), events=n % 4))
            for n in range(50)
        ]
        await readers[3 * (wave % 5)]
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    await asyncio.wait_for(engine.idle(), 20)
    await collect(engine, job())


def alive() -> Counter[type]:
    """Objects that were made for requests and are still there."""
    gc.collect()
    return Counter(type(found) for found in gc.get_objects() if type(found) in PER_REQUEST)


@FAMILIES
async def test_hundred_cancels_free_all_slots_within_two_steps(family: Family) -> None:
    """Whether they run or wait, two forwards later none of them holds anything."""
    model = WatchedModel(slots=SLOTS)
    async with running(model, family, LIMITS) as engine:
        streams = [engine.submit(job(prompt(9, n), 200)) for n in range(100)]
        for stream in streams[:SLOTS]:
            await anext(stream)
        model.gate.clear()
        for stream in streams:
            await stream.aclose()
        at_cancel = model.forwards
        model.gate.set()
        await asyncio.wait_for(engine.idle(), 20)
        assert model.forwards <= at_cancel + 2
        assert held(engine) == (0, 0, 0, 0)


@FAMILIES
async def test_thousand_cancels_leave_nothing_behind(family: Family) -> None:
    """No slot, ticket or sequence is left, and memory is as it was."""
    before = alive()
    async with running(WatchedModel(slots=SLOTS), family, LIMITS) as engine:
        await give_up_waves(engine, 4)
        tracemalloc.start()
        try:
            await give_up_waves(engine, 4)
            await eventually(lambda: not alive() - before)
            used, _ = tracemalloc.get_traced_memory()
            await give_up_waves(engine, 20)
            await eventually(lambda: not alive() - before)
            grown = tracemalloc.get_traced_memory()[0] - used
        finally:
            tracemalloc.stop()
        assert held(engine) == (0, 0, 0, 0)
        assert grown < 64 * 1000, "64 bytes a request"
