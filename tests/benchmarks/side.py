"""Contestants of a benchmark: ways to answer golden prompts, and what each did."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from deploy.models.check import check_output
from services.generation.text import Transcript
from services.generation.types import Job
from services.generation.vocabulary import Vocabulary
from tests.benchmarks.bench_engine import Contestant

Texts = list[tuple[str, int]]
"""Answers with their numbers of tokens, without the end token."""
Answer = Callable[[list[Job]], Awaitable[Texts]]


@dataclass
class Side:
    """One way to answer, and what it did in the turns of one comparison."""

    answer: Answer
    batch: int
    rates: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def fresh(self) -> Side:
        """The same without a past."""
        return Side(self.answer, self.batch)

    def note(self, items: list[dict[str, Any]], texts: Texts, seconds: float) -> None:
        """Books a turn."""
        self.rates.append(sum(tokens for _, tokens in texts) / seconds)
        self.right += [is_right(item, text) for item, (text, _) in zip(items, texts, strict=True)]

    async def turn(self, items: list[dict[str, Any]], jobs: list[Job]) -> None:
        """Answers jobs that are all there, ``batch`` at a time."""
        began, texts = time.perf_counter(), Texts()
        for start in range(0, len(jobs), self.batch):
            texts += await self.answer(jobs[start : start + self.batch])
        self.note(items, texts, time.perf_counter() - began)

    async def arrivals_in_batches(
        self, items: list[dict[str, Any]], jobs: list[Job], times: list[float]
    ) -> None:
        """Answers jobs as they arrive, those there are up to ``batch``, a batch after the other."""
        began, texts = time.perf_counter(), Texts()
        while (done := len(texts)) < len(jobs):
            await asyncio.sleep(times[done] - (time.perf_counter() - began))
            there = bisect_right(times, time.perf_counter() - began)
            end = max(done + 1, min(there, done + self.batch))
            texts += await self.answer(jobs[done:end])
            now = time.perf_counter() - began
            self.latencies += [now - arrived for arrived in times[done:end]]
        self.note(items, texts, now)

    async def arrivals_at_once(
        self, items: list[dict[str, Any]], jobs: list[Job], times: list[float]
    ) -> None:
        """Hands over each job when it arrives."""
        began = time.perf_counter()

        async def later(job: Job, arrived: float) -> tuple[str, int]:
            await asyncio.sleep(arrived)
            text = (await self.answer([job]))[0]
            self.latencies.append(time.perf_counter() - began - arrived)
            return text

        texts = await asyncio.gather(*map(later, jobs, times))
        self.note(items, texts, time.perf_counter() - began)


def is_right(item: dict[str, Any], text: str) -> bool:
    """By the item's own measure."""
    return check_output(item["check"], text, item["expect"], item.get("schema", "")).right


def of_engine(engine: Contestant) -> Answer:
    """Answers through the engine, all at once."""

    async def answer(jobs: list[Job]) -> Texts:
        answers = await asyncio.gather(*map(engine.answer, jobs))
        return [(text, usage.completion_tokens) for text, usage in answers]

    return answer


def of_reference(
    decode: Callable[[list[tuple[int, ...]], int], list[list[int]]], vocabulary: Vocabulary
) -> Answer:
    """Answers by a reference decoder, as one batch."""

    async def answer(jobs: list[Job]) -> Texts:
        most = max(job.max_new_tokens for job in jobs)
        return [
            (Transcript(vocabulary).push(tokens), len(tokens))
            for tokens in decode([job.prompt_ids for job in jobs], most)
        ]

    return answer


def pooled(sides: Iterable[Side]) -> Side:
    """All turns of one contestant."""
    turns = list(sides)
    whole = turns[0].fresh()
    for side in turns:
        whole.rates += side.rates
        whole.right += side.right
    return whole
