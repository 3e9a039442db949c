"""Generated schemas asked of both paradigms: what is refused, what the answers are worth.

    python -m tests.benchmarks.bench_schemas [AR_CHECKPOINT DIFFUSION_CHECKPOINT] [--schemas 300]

About one schema in six asks for a keyword that the service refuses. The prompts are those of the
golden set, which have nothing to do with the schemas: an answer owes its form to the grammar.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jsonschema import ValidationError

from deploy.models.golden_sets import read_golden_set
from services.chassis.errors import ConstraintNotMet, InvalidRequest, LimitExceeded
from services.generation.answering import Answering, gathered
from services.generation.plan import Plan
from services.generation.types import Constraint, Prompt, Request, Sampling
from tests.benchmarks.bench_engine import LIMITS, STORE, Contestant, contestant
from tests.generation.grammar.generated import Schema, generated, validator_of

MAX_NEW_TOKENS = 96
UNSUPPORTED = 0.15
SEED = 20
TASK = "TASK_STRUCTURED_OUTPUT"


@dataclass
class Tally:
    """What became of the schemas that one model was asked for."""

    name: str
    asked: int = 0
    valid: list[bool] = field(default_factory=list)
    """Of each answer that was given."""
    not_met: int = 0
    """Answers that were withheld, as two tries did not conform."""
    refused: Counter[str] = field(default_factory=Counter)
    too_long: int = 0
    compile_ms: list[float] = field(default_factory=list)
    per_forward: list[float] = field(default_factory=list)

    async def ask(self, each: Contestant, schema: Schema, prompt: str) -> None:
        """Asks one model for a document of the schema."""
        self.asked += 1
        plan = self._plan(each, schema, prompt)
        if plan is None:
            return
        events = Answering(each.engine, each.planner).events(plan, LIMITS)
        try:
            text, _, finished = await gathered(events)
        except ConstraintNotMet:
            self.not_met += 1
            return
        self.valid.append(is_valid(text, schema))
        self.per_forward.append(finished.usage.tokens_per_forward)

    def _plan(self, each: Contestant, schema: Schema, prompt: str) -> Plan | None:
        """Notes how long the plan takes, nearly all of it compiling, or why there is none."""
        began = time.monotonic()
        request = Request(
            f"schema-{self.asked}",
            TASK,
            Prompt(prompt),
            arrived=began,
            sampling=Sampling(max_new_tokens=MAX_NEW_TOKENS, seed=self.asked),
            constraint=Constraint("json_schema", json.dumps(schema, ensure_ascii=False)),
        )
        try:
            plan = each.planner.plan(request, LIMITS)
        except LimitExceeded:
            self.too_long += 1
        except InvalidRequest as error:
            self.refused[keyword_of(error)] += 1
        else:
            self.compile_ms.append(1000 * (time.monotonic() - began))
            return plan
        return None

    def row(self) -> str:
        """A line of the table."""
        found = sorted(self.compile_ms)
        times = (statistics.mean(found), statistics.median(found), quantile(found), found[-1])
        cells = [
            self.name,
            str(self.asked),
            str(len(self.valid)),
            f"{100 * statistics.mean(self.valid):.1f}",
            str(self.not_met),
            f"{100 * self.refused.total() / self.asked:.1f}",
            f"{100 * self.too_long / self.asked:.1f}",
            " / ".join(f"{milliseconds:.0f}" for milliseconds in times),
            f"{statistics.mean(self.per_forward):.2f}",
        ]
        return f"| {' | '.join(cells)} |"


def is_valid(text: str, schema: Schema) -> bool:
    """Whether the text is a document of the schema, formats included."""
    try:
        validator_of(schema).validate(json.loads(text))
    except (ValueError, ValidationError):
        return False
    return True


def keyword_of(error: InvalidRequest) -> str:
    """The keyword that a refusal points to, or its words where it points to the whole."""
    _, pointer, fault = error.message.split(": ", 2)
    return pointer.rpartition("/")[2] or fault


def quantile(ascending: list[float], share: float = 0.95) -> float:
    """The value that this share of the values does not exceed."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def table(tallies: list[Tally]) -> Iterator[str]:
    """Markdown lines."""
    yield (
        "| model | schemas | OK answers | valid % | withheld | refused % | too long % "
        "| compile ms mean / median / p95 / max | tokens/forward |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for tally in tallies:
        yield tally.row()
    for tally in tallies:
        counts = ", ".join(f"{word} {count}" for word, count in tally.refused.most_common())
        yield f"refused by {tally.name}: {counts or 'nothing'}"


async def run(ar_folder: Path, diffusion_folder: Path, schemas: int, dtype: str) -> None:
    """Asks both models for every schema in turns and prints the table."""
    prompts = [item["input"]["prompt"] for item in read_golden_set("json")]
    tallies = [Tally("AR"), Tally("diffusion")]
    async with contestant(ar_folder, dtype) as ar, contestant(diffusion_folder, dtype) as diffusion:
        for number, (schema, _) in enumerate(generated(schemas, SEED, UNSUPPORTED)):
            for tally, each in zip(tallies, (ar, diffusion), strict=True):
                await tally.ask(each, schema, prompts[number % len(prompts)])
    for line in table(tallies):
        print(line)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ar", nargs="?", default=STORE / "demo-ar" / "v1", type=Path)
    parser.add_argument("diffusion", nargs="?", default=STORE / "demo-diffusion" / "v1", type=Path)
    parser.add_argument("--schemas", type=int, default=300)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    asyncio.run(run(options.ar, options.diffusion, options.schemas, options.dtype))


if __name__ == "__main__":
    main()
