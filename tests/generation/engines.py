"""Engines over tiny decoders whose forwards a test can hold up, watch and break."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from collections.abc import Sequence as Many
from contextlib import asynccontextmanager

from torch import Tensor

from services.ar_worker.sequence import NextToken
from services.diffusion_worker.family import BlockDiffusion
from services.generation.engine import Engine, EngineLimits
from services.generation.sequence import Family, Rows
from services.generation.slot_model import SlotModel
from services.generation.types import Delta, Event, Finished, Job
from services.generation.vocabulary import Vocabulary
from tests.generation.tiny import MASK, VOCABULARY_SIZE, decoder

ENDLESS = Vocabulary(
    pieces=tuple(f"{token} ".encode() for token in range(VOCABULARY_SIZE)), eos_id=-1, mask_id=MASK
)
"""Every token is a word and none ends the answer: there are always max_new_tokens words."""
DIFFUSION = BlockDiffusion(ENDLESS, logit_shift=True)
NEXT_TOKEN = NextToken(ENDLESS)


class WatchedModel(SlotModel):
    """A slot model that counts its forwards and waits before each while the gate is closed."""

    def __init__(self, slots: int = 4, prefix_bytes: int = 0) -> None:
        self.module = decoder()
        super().__init__(self.module, slots=slots, max_context=256, prefix_bytes=prefix_bytes)
        self.gate = threading.Event()
        self.gate.set()
        self.forwards = 0
        self.batches: list[int] = []
        self.rows: list[int] = []
        self.touch: Callable[[Tensor], Tensor] = lambda logits: logits

    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """The real forward, once the gate is open."""
        self.gate.wait(timeout=30)
        self.forwards += 1
        self.batches.append(len(batch))
        self.rows.append(sum(len(rows.tokens) for _, rows in batch))
        return self.touch(super().forward(batch))


@asynccontextmanager
async def running(
    model: SlotModel, family: Family = DIFFUSION, limits: EngineLimits | None = None
) -> AsyncIterator[Engine]:
    """A started engine, stopped at the end; diffusion unless it is told otherwise."""
    engine = Engine(model, family, ENDLESS, limits or EngineLimits())
    engine.start()
    try:
        yield engine
    finally:
        if isinstance(model, WatchedModel):
            model.gate.set()
        await engine.stop()


async def collect(engine: Engine, job: Job) -> list[Event]:
    """All events of a job."""
    async with engine.submit(job) as events:
        return [event async for event in events]


def text(events: list[Event]) -> str:
    """The whole answer."""
    return "".join(event.text for event in events if isinstance(event, Delta))


def finished(events: list[Event]) -> Finished:
    """The last event."""
    assert isinstance(events[-1], Finished)
    return events[-1]
