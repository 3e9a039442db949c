"""The engine against published decoders on the same weights, in one interleaved run.

    python -m tests.benchmarks.bench_references [CHECKPOINT] [--items 24] [--rounds 5]

Without a checkpoint it takes the demo diffusion model. The engine answers under the model's
default settings. Each turn, both sides answer the same golden prompts, one side after the
other; ratios are medians over the turns. Prints the share of right answers beside each speed
and says where they are unequal, since such speeds compare little.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from deploy.models.check import check_output
from deploy.models.golden_sets import read_golden_set
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.text import Transcript
from services.generation.types import Job
from services.generation.vocabulary import Vocabulary
from tests.benchmarks.bench_engine import STORE, Contestant, contestant
from tests.benchmarks.references import Reference

SETS = ("json", "edit", "chain", "action")
BATCH = 8
REQUESTS = 32
OVERLOAD = 4
"""Requests that arrive while the static reference answers one."""
HEAD = "| against | right % | its right % | tok/s | its tok/s | ratio | turns | quality |"
EVEN = 2
"""Points between the shares of right answers that still count as equal quality."""

Texts = list[tuple[str, int]]
"""Answers with their numbers of tokens, without the end token."""
Answer = Callable[[list[Job]], Awaitable[Texts]]


@dataclass
class Side:
    """One way to answer, and what it did in the turns of one comparison."""

    answer: Answer
    batch: int = BATCH
    rates: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

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


def jobs_of(engine: Contestant, items: list[dict[str, Any]]) -> list[Job]:
    """Golden items as jobs under default settings."""
    return [engine.job(item, steered=False) for item in items]


async def compare(
    engine: Contestant, ours: Side, theirs: Side, items: list[dict[str, Any]]
) -> None:
    """Lets both sides answer in turns of 8 items."""
    for start in range(0, len(items), BATCH):
        chosen = items[start : start + BATCH]
        jobs = jobs_of(engine, chosen)
        for side in (theirs, ours):
            await side.turn(chosen, jobs)


async def compare_arrivals(
    engine: Contestant, ours: Side, barred: Side, theirs: Side, rounds: int
) -> None:
    """Rounds of 32 mixed requests that arrive faster than ``theirs`` can answer."""
    mixed = [item for name in SETS for item in read_golden_set(name)]
    for seed in range(rounds):
        luck = random.Random(seed)
        items = luck.sample(mixed, REQUESTS)
        jobs = jobs_of(engine, items)
        began = time.perf_counter()
        await theirs.answer(jobs[:BATCH])
        pause = (time.perf_counter() - began) / BATCH / OVERLOAD
        times = [0.0]
        while len(times) < REQUESTS:
            times.append(times[-1] + luck.expovariate(1 / pause))
        await theirs.arrivals_in_batches(items, jobs, times)
        await barred.arrivals_in_batches(items, jobs, times)
        await ours.arrivals_at_once(items, jobs, times)


def row(name: str, ours: Side, theirs: Side) -> str:
    """A line of the table."""
    ratios = [a / b for a, b in zip(ours.rates, theirs.rates, strict=True)]
    right, other = (100 * statistics.mean(side.right) for side in (ours, theirs))
    rates = [statistics.median(side.rates) for side in (ours, theirs)]
    quality = "equal" if abs(right - other) <= EVEN else "UNEQUAL"
    return (
        f"| {name} | {right:.1f} | {other:.1f} | {rates[0]:.0f} | {rates[1]:.0f} "
        f"| {statistics.median(ratios):.2f} | {len(ratios)} | {quality} |"
    )


def latency(sides: dict[str, Side]) -> Iterator[str]:
    """Lines on how long requests that arrived over time took."""
    for name, side in sides.items():
        yield f"mean latency of arriving requests, {name}: {statistics.mean(side.latencies):.2f} s"


async def run(folder: Path, items: int, rounds: int, dtype: str) -> None:
    """Makes all comparisons and prints the tables."""
    checkpoint = read_checkpoint(folder)
    vocabulary, size = checkpoint.vocabulary, checkpoint.card.block_length
    assert vocabulary.mask_id is not None
    model = load_model(checkpoint, "cpu", dtype)
    reference = Reference(model, size, vocabulary.mask_id, vocabulary.eos_id)
    cached = of_reference(reference.cached, vocabulary)
    uncached = of_reference(partial(reference.uncached, steps=size), vocabulary)
    print(HEAD)
    print("|---" * (HEAD.count("|") - 1) + "|", flush=True)
    async with contestant(folder, dtype) as engine:
        ours = of_engine(engine)
        warm = jobs_of(engine, read_golden_set("json")[-2:])
        for answer in (ours, cached, uncached):
            await answer(warm)
        for title, answer, batch in (("SDAR", cached, 1), ("LLaDA, no cache", uncached, BATCH)):
            for name in SETS:
                pair = Side(ours, batch), Side(answer, batch)
                await compare(engine, *pair, read_golden_set(name)[:items])
                print(row(f"{title}, batch {batch}: {name}", *pair), flush=True)
        free, barred, static = Side(ours), Side(ours), Side(cached)
        await compare_arrivals(engine, free, barred, static, rounds)
    sides = {"static batches of 8": static, "engine in static batches of 8": barred}
    for name, side in sides.items():
        print(row(f"{REQUESTS} arriving: {name}", free, side))
    print("\n".join(latency(sides | {"engine": free})))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    checkpoint = STORE / "demo-diffusion" / "v1"
    parser.add_argument("checkpoint", nargs="?", default=checkpoint, type=Path)
    parser.add_argument("--items", type=int, default=24, help="of each set")
    parser.add_argument("--rounds", type=int, default=5, help="of arriving requests")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    asyncio.run(run(options.checkpoint, options.items, options.rounds, options.dtype))


if __name__ == "__main__":
    main()
