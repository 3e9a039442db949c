"""Whether batch mates change answers: 200 prompts alone and in mixed batches of 8, float32.

    python -m tests.benchmarks.bench_agreement [--items 200]

Greedy and drawn, free and kept to a schema, of all tasks side by side. Prints how many
answers are the same tokens; those that differ are named with where they part.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from google.protobuf import json_format

from braid.inference.v1 import inference_pb2 as pb
from deploy.models.golden_sets import KINDS, read_golden_set
from services.generation.types import Constraint, Request, Sampling
from services.generation.wire import from_proto
from tests.benchmarks.bench_engine import LIMITS, STORE, Contestant, contestant

BATCH = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """One item's text, alone or in company."""

    name: str
    text: str


def requests(items: int) -> Iterator[Request]:
    """Golden items in a fixed mixed order: every third is drawn, every other JSON is steered."""
    mixed = [item for kind in KINDS for item in read_golden_set(kind)]
    random.Random(1).shuffle(mixed)
    for number, item in enumerate(mixed[:items]):
        drawn = number % 3 == 0
        sampling = Sampling(temperature=0.8 if drawn else 0.0, top_p=0.95, seed=number)
        steered = "schema" in item and number % 2 == 0
        yield _request(item, sampling, steered=steered)


def _request(item: dict[str, Any], sampling: Sampling, *, steered: bool) -> Request:
    message = json_format.ParseDict({"task": item["task"], **item["input"]}, pb.GenerateRequest())
    read = from_proto(message, now=time.monotonic())
    form = Constraint("json_schema", item["schema"]) if steered else None
    return Request(item["id"], read.task, read.input, read.arrived, sampling, constraint=form)


async def answers(one: Contestant, asked: list[Request], batch: int) -> list[Answer]:
    """All answers, ``batch`` at a time."""
    found: list[Answer] = []
    for start in range(0, len(asked), batch):
        part = asked[start : start + batch]
        jobs = [one.planner.plan(request, LIMITS).job for request in part]
        texts = await asyncio.gather(*map(one.answer, jobs))
        found += [Answer(r.request_id, text) for r, (text, _) in zip(part, texts, strict=True)]
    return found


async def agreement(folder: Path, items: int) -> None:
    """Prints one line for a checkpoint, and one for each answer that differs."""
    async with contestant(folder, "float32") as one:
        asked = list(requests(items))
        alone = await answers(one, asked, 1)
        together = await answers(one, asked, BATCH)
    differing = [(a, b) for a, b in zip(alone, together, strict=True) if a != b]
    print(f"{folder.parent.name}: {len(asked) - len(differing)} of {len(asked)} the same")
    for a, b in differing:
        at = next((i for i, (x, y) in enumerate(zip(a.text, b.text, strict=False)) if x != y), -1)
        print(f"  {a.name} differs from character {at} on")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in ("demo-diffusion", "demo-ar"):
        asyncio.run(agreement(STORE / name / "v1", options.items))


if __name__ == "__main__":
    main()
