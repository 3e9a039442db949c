"""The engine against published decoders on the same weights, in one interleaved run.

    python -m tests.benchmarks.bench_references [CHECKPOINT] [--items 24] [--rounds 5]

Without a checkpoint it takes the demo diffusion model. The engine answers under the model's
default settings. Each turn, both sides answer the same golden prompts, one side after the
other; ratios are medians over the turns. Prints the engine's figures and "its", the other
side's: the share of right answers beside each speed, since speeds at unequal quality compare
little.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from deploy.models.golden_sets import read_golden_set
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.types import Job
from tests.benchmarks.bench_engine import STORE, Contestant, contestant
from tests.benchmarks.references import Reference
from tests.benchmarks.side import Side, of_engine, of_reference, pooled

SETS = ("json", "edit", "chain", "action")
BATCH = 8
REQUESTS = 32
OVERLOAD = 4
"""Requests that arrive while the static reference answers one."""
HEAD = "| against | right % | its right % | tok/s | its tok/s | ratio | turns | quality |"
EVEN = 2
"""Points between the shares of right answers that still count as equal quality."""


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


async def compare_sets(engine: Contestant, title: str, theirs: Side, items: int) -> None:
    """Compares on each set and prints a line for it, and one for all of them."""
    ours = Side(of_engine(engine), theirs.batch)
    pairs = [(ours.fresh(), theirs.fresh()) for _ in SETS]
    for name, pair in zip(SETS, pairs, strict=True):
        await compare(engine, *pair, read_golden_set(name)[:items])
        print(row(f"{title}: {name}", *pair), flush=True)
    print(row(f"{title}: all", *map(pooled, zip(*pairs, strict=True))), flush=True)


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
    async with contestant(folder, dtype) as engine:
        ours = of_engine(engine)
        warm = jobs_of(engine, read_golden_set("json")[-2:])
        for answer in (ours, cached, uncached):
            await answer(warm)
        print(HEAD)
        print("|---" * (HEAD.count("|") - 1) + "|", flush=True)
        await compare_sets(engine, "SDAR, batch 1", Side(cached, 1), items)
        await compare_sets(engine, "LLaDA, no cache, batch 8", Side(uncached, BATCH), items)
        free, barred, static = (Side(answer, BATCH) for answer in (ours, ours, cached))
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
