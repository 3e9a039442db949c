"""What a worker does with a model before it serves: every real path once, and golden prompts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from torch import Tensor

from services.generation.answering import Answering, Submits
from services.generation.card import GoldenPrompt
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.reception import ServedModel
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from services.generation.stream import EventStream
from services.generation.types import Infill, Job, Request, Sampling
from services.generation.warmup import SelfTestFailed, batch_sizes, self_test, warm_up
from tests.generation.requests import LIMITS, request
from tests.generation.serving import serving

ANSWERS = {"2 + 3": "5", "sky": "blau"}


class CountedModel(SlotModel):
    """Notes how many sequences share each forward."""

    def forward(self, batch: Sequence[tuple[int, Rows]]) -> Tensor:
        """The real forward."""
        self.batches = {*getattr(self, "batches", ()), len(batch)}
        return super().forward(batch)


@dataclass
class Jobs:
    """Passes jobs on and keeps them."""

    engine: Submits
    seen: list[Job] = field(default_factory=list)

    def submit(self, job: Job) -> EventStream:
        """As the engine's."""
        self.seen.append(job)
        return self.engine.submit(job)


@asynccontextmanager
async def warming(folder: Path) -> AsyncIterator[tuple[ServedModel, Jobs, CountedModel]]:
    """A model that nobody has used yet."""
    module = load_model(read_checkpoint(folder), "cpu", "float32")
    model = CountedModel(module, slots=LIMITS.max_batch_size, max_context=LIMITS.max_context)
    async with serving(folder, model=model) as worker:
        assert worker.reception.model
        jobs = Jobs(worker.engine)
        served = worker.reception.model
        yield replace(served, answering=Answering(jobs, served.planner)), jobs, model


async def test_every_batch_size_and_path_runs(ar_checkpoint: Path) -> None:
    """Prompts, gaps, a schema and each batch size were computed, and the time of both ends told."""
    async with warming(ar_checkpoint) as (served, jobs, model):
        told = await warm_up(served)
        gap = served.planner.plan(_gap(served), LIMITS).job.prompt_ids
    assert model.batches >= {1, 2, 4}
    assert any(job.automaton is not None for job in jobs.seen)
    assert any(job.prompt_ids == gap for job in jobs.seen)
    assert 0 < told.first_s < told.total_s
    assert 0 < told.last_s < told.total_s


def test_batch_sizes_double_up_to_the_most() -> None:
    """Each size in use is near one that was run."""
    assert list(batch_sizes(1)) == [1]
    assert list(batch_sizes(4)) == [2, 4]
    assert list(batch_sizes(12)) == [2, 4, 8, 12]


async def test_golden_prompts_pass(ar_checkpoint: Path) -> None:
    """A model that answers as its card says passes."""
    async with serving(ar_checkpoint, ANSWERS) as worker:
        assert worker.reception.model
        golden = tuple(GoldenPrompt(prompt=p, answer=a) for p, a in ANSWERS.items())
        await self_test(_with(worker.reception.model, golden))


async def test_a_wrong_answer_is_named_by_number(ar_checkpoint: Path) -> None:
    """The failure says which golden prompt it was, and neither prompt nor answer."""
    golden = (
        GoldenPrompt(prompt="2 + 3", answer="5"),
        GoldenPrompt(prompt="sky", answer="bleu"),
    )
    async with serving(ar_checkpoint, ANSWERS) as worker:
        assert worker.reception.model
        with pytest.raises(SelfTestFailed, match="golden prompts 2 of 2") as failed:
            await self_test(_with(worker.reception.model, golden))
    assert not any(text in str(failed.value) for text in ("sky", "bleu", "blau"))


def _with(model: ServedModel, golden: tuple[GoldenPrompt, ...]) -> ServedModel:
    return replace(model, card=model.card.model_copy(update={"self_test": golden}))


def _gap(served: ServedModel) -> Request:
    warmup = served.card.warmup
    return request(Infill(warmup[0], warmup[-1]), sampling=Sampling(max_new_tokens=32))
