"""Diffusion answers under a latency budget: how many come in time, and the quality paid.

    python -m tests.benchmarks.bench_deadline [CHECKPOINT] [--items 50]

Each item's natural time is taken first, as the quicker of two runs; then it is asked again
with half, a quarter and a tenth of that time, one request after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import torch

from services.chassis.errors import DeadlineExceeded
from services.generation.types import Finished
from tests.benchmarks.bench_engine import (
    SETS,
    STORE,
    Contestant,
    contestant,
    counted,
    golden_items,
)

SHARES = (0.5, 0.25, 0.1)
"""Of the natural time."""
NO_BUDGET = float("inf")
HEAD = (
    "| time | ms | set | requests | under a forward (in time) | in time % | refused | late "
    "| right % | valid % | best effort % | forwards |"
)
"""ms is the median budget, or the median natural time. Requests whose budget ends before their
first forward does stand apart. Refused means DEADLINE_EXCEEDED; what follows is of answers in
time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request; seconds from its submission on."""

    seconds: float
    finished: Finished | None = None
    """None: there was DEADLINE_EXCEEDED instead of an answer."""
    right: bool = False
    valid: bool | None = None
    """None where no form was asked for."""
    budget: float = NO_BUDGET
    feasible: bool = True
    """Whether the budget holds the first forward."""

    @property
    def allowed(self) -> float:
        """The budget; what it took where there was none."""
        return self.seconds if self.budget == NO_BUDGET else self.budget

    @property
    def in_time(self) -> bool:
        """Whether there was an answer within the budget."""
        return self.finished is not None and self.seconds <= self.budget


async def ask(
    each: Contestant, name: str, item: dict[str, Any], budget: float = NO_BUDGET
) -> Outcome:
    """One golden item of the set, alone on the engine."""
    job = each.job(item, steered=name == "schema")
    arrived = time.monotonic()
    answer_by = None if budget == NO_BUDGET else arrived + budget
    try:
        text, finished = await each.finish(replace(job, arrived=arrived, answer_by=answer_by))
    except DeadlineExceeded:
        return Outcome(time.monotonic() - arrived, budget=budget)
    return Outcome(
        time.monotonic() - arrived,
        finished,
        right=counted(name, text) == counted(name, item["expect"]),
        valid=is_valid(text, item["schema"]) if name == "schema" else None,
        budget=budget,
    )


def is_valid(text: str, schema: str) -> bool:
    """Whether the text is a document of the schema."""
    try:
        jsonschema.validate(json.loads(text), json.loads(schema))
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


async def hurried(each: Contestant, name: str, item: dict[str, Any]) -> list[Outcome]:
    """The item in its natural time, then in each share of it."""
    runs = [await ask(each, name, item) for _ in range(2)]
    natural = min(runs, key=lambda run: run.seconds)
    assert natural.finished is not None
    first = first_forward(natural.finished)
    outcomes = [natural]
    for budget in (share * natural.seconds for share in SHARES):
        outcome = await ask(each, name, item, budget)
        outcomes.append(replace(outcome, feasible=budget >= first))
    return outcomes


def first_forward(finished: Finished) -> float:
    """Seconds from the submission to the end of the first forward."""
    return finished.timing.queue + finished.timing.prefill


async def run(checkpoint: Path, items: int, dtype: str) -> None:
    """Asks ``items`` of each set and prints the table."""
    outcomes: dict[tuple[float, str], list[Outcome]] = {}
    async with contestant(checkpoint, dtype) as each:
        for item in golden_items("json")[-4:]:
            await ask(each, "schema", item)
        for number in range(items):
            for name in SETS:
                found = await hurried(each, name, golden_items(name)[number])
                for share, outcome in zip((1.0, *SHARES), found, strict=True):
                    outcomes.setdefault((share, name), []).append(outcome)
    print(HEAD)
    print("|---" * (HEAD.count("|") - 1) + "|")
    for share in (1.0, *SHARES):
        for name in SETS:
            print(row(share, name, outcomes[share, name]))
        print(row(share, "all", [one for name in SETS for one in outcomes[share, name]]))


def row(share: float, name: str, outcomes: list[Outcome]) -> str:
    """A line of the table; requests without time for one forward count apart."""
    feasible = [outcome for outcome in outcomes if outcome.feasible]
    hopeless = [outcome for outcome in outcomes if not outcome.feasible]
    refused = sum(outcome.finished is None for outcome in feasible)
    late = [one for one in feasible if one.finished and not one.in_time]
    ends = [(one, one.finished) for one in outcomes if one.finished and one.in_time]
    cells = [
        f"{share:.0%}",
        f"{1000 * statistics.median(one.allowed for one in outcomes):.0f}",
        name,
        str(len(outcomes)),
        f"{len(hopeless)} ({sum(one.in_time for one in hopeless)})",
        percent(outcome.in_time for outcome in feasible),
        str(refused),
        lateness(late),
        percent(one.right for one, _ in ends),
        percent(one.valid for one, _ in ends if one.valid is not None),
        percent(end.best_effort for _, end in ends),
        f"{statistics.mean(end.usage.forward_passes for _, end in ends):.1f}" if ends else "-",
    ]
    return f"| {' | '.join(cells)} |"


def lateness(late: list[Outcome]) -> str:
    """How many were late, how many of them with their first forward, and by how much at most."""
    if not late:
        return "0"
    at_once = sum(first_forward(one.finished) >= one.budget for one in late if one.finished)
    worst = max(one.seconds - one.budget for one in late)
    return f"{len(late)} ({at_once} at the first forward; by {1000 * worst:.0f} ms at most)"


def percent(flags: Iterable[bool]) -> str:
    """Their share that is true; a dash where there are none."""
    found = list(flags)
    return f"{100 * statistics.mean(found):.1f}" if found else "-"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    checkpoint = STORE / "demo-diffusion" / "v1"
    parser.add_argument("checkpoint", nargs="?", default=checkpoint, type=Path)
    parser.add_argument("--items", type=int, default=50, help="of each set")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    asyncio.run(run(options.checkpoint, options.items, options.dtype))


if __name__ == "__main__":
    main()
