"""Prompt heads that requests share: computed once, and nobody can tell from the answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import torch

from services.chassis.errors import EngineFailure
from services.diffusion_worker.family import BlockDiffusion
from services.generation.prefix_cache import PrefixCache
from services.generation.sequence import Family, Head
from services.generation.slot_model import cache_shape
from services.generation.slots import GRAIN, SlotCache
from services.generation.types import Job
from tests.generation.engines import (
    DIFFUSION,
    ENDLESS,
    NEXT_TOKEN,
    WatchedModel,
    collect,
    finished,
    running,
    text,
)
from tests.generation.tiny import BLOCK, PLAN, decoder, job, prompt

UNSHIFTED = BlockDiffusion(ENDLESS, logit_shift=False)
FAMILIES = pytest.mark.parametrize(
    "family", [NEXT_TOKEN, DIFFUSION, UNSHIFTED], ids=["ar", "shifted", "unshifted"]
)
ROOM = 2**20
HEAD = prompt(2 * GRAIN)


def asked(number: int, tokens: tuple[int, ...] = HEAD, tail: int = 9) -> Job:
    """A job that begins like others and ends like none."""
    luck = 0.8 * (number % 2)
    return job((*tokens, *prompt(tail, number)), 24, seed=number, temperature=luck)


@FAMILIES
@pytest.mark.parametrize("tail", [1, BLOCK, 9, GRAIN + 3])
async def test_shared_heads_change_no_answer(family: Family, tail: int) -> None:
    """Answers are those of an engine that keeps nothing, one after another and all together."""
    jobs = [asked(number, tail=tail) for number in range(5)]
    async with running(WatchedModel(), family) as plain:
        expected = [text(await collect(plain, one)) for one in jobs]
    async with running(WatchedModel(prefix_bytes=ROOM), family) as engine:
        events = [await collect(engine, one) for one in jobs]
        together = await asyncio.gather(*(collect(engine, one) for one in jobs))
    assert [text(one) for one in events] == expected
    assert [text(one) for one in together] == expected
    cached = [finished(one).usage.cached_tokens for one in events]
    whole = len(HEAD) if tail >= BLOCK or family is not DIFFUSION else GRAIN
    assert cached[:1] == [0]
    assert set(cached[1:]) == {whole}


@FAMILIES
async def test_what_is_kept_is_not_computed(family: Family) -> None:
    """A second call computes its own part of the prompt alone."""
    model = WatchedModel(prefix_bytes=ROOM)
    async with running(model, family) as engine:
        await collect(engine, asked(0))
        first, before = sum(model.rows), len(model.rows)
        await collect(engine, asked(0))
    assert first - sum(model.rows[before:]) == len(HEAD)


async def test_heads_are_shared_up_to_their_first_difference() -> None:
    """Of a prompt that differs in its second chunk the first chunk alone is taken over."""
    other = (*HEAD[:-1], HEAD[0])
    async with running(WatchedModel(prefix_bytes=ROOM), NEXT_TOKEN) as engine:
        await collect(engine, asked(0))
        usage = finished(await collect(engine, asked(0, other))).usage
    assert usage.cached_tokens == GRAIN


async def test_other_blocks_see_other_tokens() -> None:
    """Keys of one block length are none of another: inside a block every token sees all."""
    shorter = replace(asked(0), denoising=replace(PLAN, block_length=BLOCK // 2))
    async with running(WatchedModel(prefix_bytes=ROOM), DIFFUSION) as engine:
        await collect(engine, asked(0))
        assert finished(await collect(engine, shorter)).usage.cached_tokens == 0


def test_least_recently_used_heads_go_first() -> None:
    """Within its budget the cache keeps what was used last, and never a tail without its lead."""
    slots = SlotCache(cache_shape(decoder()), 1, 2 * GRAIN)
    chunk_bytes = slots.get(0, 0, GRAIN).nbytes
    cache = PrefixCache(slots, 3 * chunk_bytes)
    old, new = Head(HEAD), Head(prompt(2 * GRAIN, 1))
    cache.keep(0, old)
    cache.keep(0, new)
    assert cache.bytes_used == 3 * chunk_bytes
    assert (cache.restore(0, old), cache.restore(0, new)) == (GRAIN, 2 * GRAIN)
    cache.restore(0, old)
    cache.keep(0, Head(prompt(GRAIN, 2)))
    assert (cache.restore(0, old), cache.restore(0, new)) == (GRAIN, GRAIN)


def test_chunks_come_back_as_they_were() -> None:
    """What is restored into another slot is what was kept, in its place."""
    slots = SlotCache(cache_shape(decoder()), 2, 2 * GRAIN)
    kept = torch.randn_like(slots.get(0, 0, 2 * GRAIN))
    slots.put(0, 0, kept)
    cache = PrefixCache(slots, ROOM)
    cache.keep(0, Head(HEAD))
    assert cache.restore(1, Head(HEAD)) == 2 * GRAIN
    assert torch.equal(slots.get(1, 0, 2 * GRAIN), kept)


async def test_a_slot_that_may_hold_nan_is_wiped() -> None:
    """What a broken sequence left behind reaches no neighbour, whose padding reads over it."""
    model = WatchedModel(slots=2)
    async with running(model, NEXT_TOKEN) as engine:
        expected = [text(await collect(engine, asked(n, tail=n))) for n in (1, 60)]
        weight = model.module.model.embed_tokens.weight.data
        sane = weight.clone()
        weight.fill_(torch.nan)
        with pytest.raises(EngineFailure):
            await collect(engine, asked(0))
        weight.copy_(sane)
        both = await asyncio.gather(*(collect(engine, asked(n, tail=n)) for n in (1, 60)))
    assert [text(one) for one in both] == expected
