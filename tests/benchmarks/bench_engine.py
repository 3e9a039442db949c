"""Diffusion against AR in one interleaved run, and what the step loop itself costs.

    python -m tests.benchmarks.bench_engine [AR_CHECKPOINT DIFFUSION_CHECKPOINT] [--items 40]

Without checkpoints it takes the demo pair.

Both engines answer the same golden prompts in turns, so that a busy machine
slows both. Prints medians over the turns.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deploy.models.golden_sets import read_golden_set
from services.ar_worker.sequence import NextToken
from services.diffusion_worker.family import BlockDiffusion
from services.generation.answering import gathered
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.engine import Engine, EngineLimits
from services.generation.limits import Limits
from services.generation.planner import Planner, planner_of
from services.generation.sequence import Family
from services.generation.slot_model import SlotModel
from services.generation.types import Constraint, Edit, Finished, Job, Prompt, Request, Usage

STORE = Path(__file__).parents[2] / "deploy" / "models" / "store"
SETS = ("json", "schema", "edit", "chain")
"""Golden sets; schema is json with each answer kept to its schema, by AR with jump-forward."""
LIMITS = Limits(
    max_steps=16,
    max_batch_size=8,
    max_concurrency=64,
    queue_length=64,
    max_new_tokens=192,
    max_context=512,
)


class TimedModel(SlotModel):
    """A slot model that adds up the time of its forwards."""

    seconds = 0.0

    def forward(self, batch: Any) -> Tensor:
        """The real forward."""
        began = time.perf_counter()
        logits = super().forward(batch)
        self.seconds += time.perf_counter() - began
        return logits


@dataclass
class Contestant:
    """One engine with its model and what it did so far."""

    engine: Engine
    model: TimedModel
    planner: Planner
    rates: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    loop_shares: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    right: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    tokens: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def turn(self, name: str, items: list[dict[str, Any]], batch: int) -> None:
        """Answers items, ``batch`` at a time, and notes tokens per second."""
        jobs = [self.job(item, steered=name == "schema") for item in items]
        before, began = self.model.seconds, time.perf_counter()
        answers = []
        for start in range(0, len(jobs), batch):
            answers += await asyncio.gather(*map(self.answer, jobs[start : start + batch]))
        elapsed = time.perf_counter() - began
        tokens = sum(usage.completion_tokens for _, usage in answers)
        self.rates[name, batch].append(tokens / elapsed)
        self.loop_shares[batch].append(1 - (self.model.seconds - before) / elapsed)
        if batch == 1:
            for item, (text, usage) in zip(items, answers, strict=True):
                self.right[name].append(counted(name, text) == counted(name, item["expect"]))
                self.tokens[name].append(usage.tokens_per_forward)

    async def answer(self, job: Job) -> tuple[str, Usage]:
        """Text and usage of one job."""
        text, finished = await self.finish(job)
        return text, finished.usage

    async def finish(self, job: Job) -> tuple[str, Finished]:
        """Text and end of one job; raises what the engine refuses or fails it with."""
        async with self.engine.submit(job) as events:
            text, _, finished = await gathered(events)
        return text, finished

    def job(self, item: dict[str, Any], *, steered: bool) -> Job:
        """A golden item as a job under default settings, kept to its schema or not."""
        asked = item["input"]
        edit = asked.get("edit")
        source = Edit(edit["text"], edit["instruction"]) if edit else Prompt(asked["prompt"])
        form = Constraint("json_schema", item["schema"]) if steered else None
        request = Request(
            item["id"], item["task"], source, arrived=time.monotonic(), constraint=form
        )
        return self.planner.plan(request, LIMITS).job


@asynccontextmanager
async def contestant(folder: Path, dtype: str) -> AsyncIterator[Contestant]:
    """A started engine over a checkpoint."""
    checkpoint = read_checkpoint(folder)
    card, vocabulary = checkpoint.card, checkpoint.vocabulary
    family: Family = NextToken(vocabulary)
    if vocabulary.mask_id is not None:
        family = BlockDiffusion(vocabulary, logit_shift=card.logit_shift)
    model = TimedModel(load_model(checkpoint, "cpu", dtype), slots=8, max_context=512)
    engine = Engine(model, family, vocabulary, EngineLimits())
    engine.start()
    try:
        yield Contestant(engine, model, planner_of(checkpoint))
    finally:
        await engine.stop()


async def race(ar_folder: Path, diffusion_folder: Path, items: int, dtype: str) -> None:
    """Lets both answer in turns of 8 items and prints the table."""
    async with contestant(ar_folder, dtype) as ar, contestant(diffusion_folder, dtype) as diffusion:
        golden = {name: golden_items(name)[:items] for name in SETS}
        for both in (ar, diffusion):
            await both.turn("warm-up", golden["json"][:2], 1)
        for batch in (1, 8):
            for name, chosen in golden.items():
                for start in range(0, len(chosen), 8):
                    await ar.turn(name, chosen[start : start + 8], batch)
                    await diffusion.turn(name, chosen[start : start + 8], batch)
        for line in table(ar, diffusion):
            print(line)


def table(ar: Contestant, diffusion: Contestant) -> Iterator[str]:
    """Markdown lines."""
    yield "| set | AR right | diffusion right | tokens/forward | AR tok/s | diff. tok/s | ratio |"
    yield "|---|---|---|---|---|---|---|"
    for name, batch in [(name, batch) for batch in (1, 8) for name in SETS]:
        slow, fast = (statistics.median(each.rates[name, batch]) for each in (ar, diffusion))
        pairs = zip(ar.rates[name, batch], diffusion.rates[name, batch], strict=True)
        ratio = statistics.median(after / before for before, after in pairs)
        right = [f"{100 * statistics.mean(each.right[name]):.1f}" for each in (ar, diffusion)]
        per_forward = statistics.mean(diffusion.tokens[name])
        yield (
            f"| {name}, batch {batch} | {right[0]} | {right[1]} | {per_forward:.2f} "
            f"| {slow:.0f} | {fast:.0f} | {ratio:.2f} |"
        )
    for label, each in (("AR", ar), ("diffusion", diffusion)):
        shares = [f"{100 * statistics.median(each.loop_shares[batch]):.0f} %" for batch in (1, 8)]
        yield f"loop's own share, {label}: {shares[0]} at batch 1, {shares[1]} at batch 8"


def golden_items(name: str) -> list[dict[str, Any]]:
    """The items of a set in their order."""
    return read_golden_set("json" if name == "schema" else name)


def counted(name: str, text: str) -> str:
    """What counts in a text: all of it, or the last word of a chain of reasoning."""
    return (text.split() or [""])[-1] if name == "chain" else text.strip()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ar", nargs="?", default=STORE / "demo-ar" / "v1", type=Path)
    parser.add_argument("diffusion", nargs="?", default=STORE / "demo-diffusion" / "v1", type=Path)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    asyncio.run(race(options.ar, options.diffusion, options.items, options.dtype))


if __name__ == "__main__":
    main()
