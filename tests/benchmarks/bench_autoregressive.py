"""The engine as an AR server, against transformers' ``generate`` on the same weights.

    python -m tests.benchmarks.bench_autoregressive [CHECKPOINT] [--rounds 5]

Without a checkpoint it takes the demo AR model. Both sides answer the same golden prompts
in turns on one CPU thread; ratios are medians over the turns. "First over tenth" is taken
in processes of their own, each of which warms up and then answers ten calls.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

import structlog
import torch
from grpc_health.v1 import health_pb2, health_pb2_grpc
from transformers import PreTrainedModel

from deploy.models.golden_sets import read_golden_set
from services.ar_worker.sequence import NextToken
from services.generation.answering import Answering
from services.generation.checkpoint import Checkpoint, load_model, read_checkpoint
from services.generation.engine import Engine, EngineLimits
from services.generation.planner import planner_of
from services.generation.reception import ServedModel
from services.generation.slot_model import SlotModel
from services.generation.types import Finished, Job, Prompt, Request, Sampling, ServedBy
from services.generation.warmup import warm_up
from tests.benchmarks.bench_engine import LIMITS, STORE
from tests.generation.serving import serving

BATCH = 8
TOKENS = 64
HEAD = 512
ARRIVALS = 24
OVERLOAD = 4
"""Requests that arrive while ``generate`` answers one."""
CHECKS = 500


class Rivals:
    """One engine and ``generate``, over copies of the same weights."""

    def __init__(self, checkpoint: Checkpoint, dtype: str) -> None:
        self.checkpoint = checkpoint
        self.planner = planner_of(checkpoint)
        self.reference: PreTrainedModel = load_model(checkpoint, "cpu", dtype)
        self.model = SlotModel(
            load_model(checkpoint, "cpu", dtype), slots=BATCH, max_context=1024, prefix_bytes=2**28
        )

    @asynccontextmanager
    async def engine(self, *, endless: bool) -> AsyncIterator[Engine]:
        """A started engine; ``endless`` ones take no token for an end."""
        vocabulary = self.checkpoint.vocabulary
        if endless:
            vocabulary = replace(vocabulary, eos_id=-1)
        limits = EngineLimits(queue_length=ARRIVALS)
        engine = Engine(self.model, NextToken(vocabulary), vocabulary, limits)
        engine.start()
        try:
            yield engine
        finally:
            await engine.stop()

    def job(self, item: dict[str, Any], tokens: int) -> Job:
        """A golden prompt as a job."""
        asked = Prompt(item["input"]["prompt"])
        sampling = Sampling(max_new_tokens=tokens, seed=0)
        request = Request(item["id"], item["task"], asked, time.monotonic(), sampling)
        return self.planner.plan(request, LIMITS).job

    @torch.inference_mode()
    def generate(self, jobs: list[Job], *, endless: bool) -> int:
        """Lets transformers answer as one padded batch; returns the tokens it gave."""
        card, longest = self.checkpoint.card, max(len(job.prompt_ids) for job in jobs)
        pad = self.checkpoint.codec.special(card.pad_token or card.eos_token)
        rows = [[pad] * (longest - len(job.prompt_ids)) + list(job.prompt_ids) for job in jobs]
        ids, eos = torch.tensor(rows), self.checkpoint.vocabulary.eos_id
        most = jobs[0].max_new_tokens
        out = self.reference.generate(  # type: ignore[operator]  # transformers
            ids,
            attention_mask=(ids != pad).long(),
            max_new_tokens=most,
            min_new_tokens=most if endless else None,
            do_sample=False,
            pad_token_id=pad,
            eos_token_id=eos,
        )
        return sum(_length(row, eos) for row in out[:, longest:].tolist())


def _length(row: list[int], eos: int) -> int:
    return row.index(eos) if eos in row else len(row)


async def answer(engine: Engine, job: Job, delay: float = 0.0) -> Finished:
    """The end of one answer, asked for after ``delay``."""
    await asyncio.sleep(delay)
    async with engine.submit(replace(job, arrived=time.monotonic())) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event
    raise AssertionError("the stream has no end")


async def speed(rivals: Rivals, batch: int, rounds: int) -> str:
    """Tokens per second at equal work: every answer has as many tokens."""
    ours, theirs = list[float](), list[float]()
    items = read_golden_set("chain")
    async with rivals.engine(endless=True) as engine:
        for turn in range(2 * rounds + 1):
            start = turn * batch % (len(items) - batch)
            jobs = [rivals.job(item, TOKENS) for item in items[start : start + batch]]
            began = time.perf_counter()
            await asyncio.gather(*(answer(engine, job) for job in jobs))
            middle = time.perf_counter()
            rivals.generate(jobs, endless=True)
            ours.append(middle - began)
            theirs.append(time.perf_counter() - middle)
    ratio = statistics.median(b / a for a, b in zip(ours[1:], theirs[1:], strict=True))
    rate = batch * TOKENS / statistics.median(ours[1:])
    return f"batch {batch}: {rate:.0f} tok/s, {ratio:.2f} x generate"


async def arrivals(rivals: Rivals, rounds: int) -> str:
    """Requests that come at random, against generate called once for each of them."""
    ratios, luck = list[float](), random.Random(0)
    items = read_golden_set("chain")[:ARRIVALS]
    jobs = [rivals.job(item, 192) for item in items]
    async with rivals.engine(endless=False) as engine:
        for _ in range(rounds):
            began = time.perf_counter()
            theirs = sum(rivals.generate([job], endless=False) for job in jobs)
            each = (time.perf_counter() - began) / len(jobs)
            delays = accumulate(luck.expovariate(OVERLOAD / each) for _ in jobs)
            middle = time.perf_counter()
            ends = await asyncio.gather(*map(answer, repeat(engine), jobs, delays))
            elapsed = time.perf_counter() - middle
            ours = sum(end.usage.completion_tokens for end in ends)
            ratios.append(ours / elapsed / (theirs / (middle - began)))
    return f"mixed arrivals, batch {BATCH}: {statistics.median(ratios):.2f} x generate each"


async def shared_head(rivals: Rivals, rounds: int) -> str:
    """Time to the first token behind a head that is new, and behind one that is known."""
    cold, warm, luck = list[float](), list[float](), random.Random(0)
    tail = rivals.job(read_golden_set("chain")[0], 4)
    async with rivals.engine(endless=True) as engine:
        for _ in range(2 * rounds):
            head = tuple(luck.choices(range(300, 2000), k=HEAD))
            for times in (cold, warm):
                job = replace(tail, prompt_ids=(*head, *tail.prompt_ids))
                times.append((await answer(engine, job)).timing.first_output)
    ratio = statistics.median(a / b for a, b in zip(cold, warm, strict=True))
    return f"shared head of {HEAD} tokens: first token {ratio:.1f} x sooner"


async def first_and_tenth(rivals: Rivals) -> None:
    """Prints how long the first call after warm-up takes, over the tenth."""
    times = list[float]()
    async with rivals.engine(endless=False) as engine:
        card, answering = rivals.checkpoint.card, Answering(engine, rivals.planner)
        node = ServedBy("bench", "ar", "demo-ar", "v1", card.paradigm)
        await warm_up(ServedModel(node, card, rivals.planner, answering, LIMITS))
        job = rivals.job(read_golden_set("chain")[0], TOKENS)
        times += [(await answer(engine, job)).timing.total for _ in range(10)]
    print(times[0] / times[9])


def start(folder: Path, rounds: int) -> str:
    """The ratio of first to tenth call over fresh processes."""
    command = [sys.executable, "-m", f"{__package__}.bench_autoregressive", str(folder), "--first"]
    ratios = [
        float(subprocess.run(command, capture_output=True, check=True).stdout.split()[-1])
        for _ in range(rounds)
    ]
    return f"first call over tenth: {statistics.median(ratios):.2f}"


async def health(folder: Path) -> str:
    """How long health checks wait while a full batch is computed, over a socket."""
    waits = []
    async with serving(folder, limits=replace(LIMITS, max_batch_size=4)) as worker:
        stub: Any = health_pb2_grpc.HealthStub(worker.channel)
        done = asyncio.Event()

        async def keep_busy() -> None:
            while not done.is_set():
                await worker.text(prompt="2 + 3, " * 8)

        work = asyncio.gather(*(keep_busy() for _ in range(BATCH)))
        for _ in range(CHECKS):
            began = time.perf_counter()
            await stub.Check(health_pb2.HealthCheckRequest())
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(0.01)
        done.set()
        await work
    p99 = statistics.quantiles(waits, n=100)[-1]
    return f"health while computing: p99 {1000 * p99:.1f} ms"


async def run(folder: Path, rounds: int, dtype: str) -> None:
    """Prints a line for each figure."""
    rivals = Rivals(read_checkpoint(folder), dtype)
    for batch in (1, BATCH):
        print(await speed(rivals, batch, rounds), flush=True)
    print(await arrivals(rivals, rounds), flush=True)
    print(await shared_head(rivals, rounds), flush=True)
    print(start(folder, rounds), flush=True)
    print(await health(folder), flush=True)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", nargs="?", default=STORE / "demo-ar" / "v1", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--first", action="store_true", help="only the calls after warm-up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    if options.first:
        asyncio.run(first_and_tenth(Rivals(read_checkpoint(options.checkpoint), options.dtype)))
    else:
        asyncio.run(run(options.checkpoint, options.rounds, options.dtype))


if __name__ == "__main__":
    main()
