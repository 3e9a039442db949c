"""Diffusion answers under a deadline: how many callers have theirs in time, and the quality paid.

    python -m tests.benchmarks.bench_deadline [--items 40] [--load 1.0] [--by-deadline]

Callers ask the diffusion worker of a mesh over a socket and look at their own clock. Each request
is first asked without a budget, then with half, a quarter and a tenth of the time it took:
one at a time, and in streams of calls that come at the same random moments each time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.chassis.channel import open_channel
from services.cli.mesh_plan import MeshOptions
from services.cli.mesh_record import MeshRecord
from services.cli.mesh_session import with_mesh
from services.cli.screen import screen
from tests.benchmarks.bench_engine import STORE
from tests.benchmarks.hurried import NO_BUDGET, SETS, Outcome, Question, Waits, ask, send
from tests.benchmarks.hurried import first_forward as first_forward_of
from tests.benchmarks.hurried import questions as golden_questions

SHARES = (1.0, 0.5, 0.25, 0.1)
"""Of the natural time, which is the first of them."""
WARM_UP = 16
HEAD = (
    "| time | ms | set | calls | too short | answered % | refused | late | by the machine "
    "| right % | valid % | best effort % | forwards |"
)
LEGEND = """\
ms: median budget, or median natural time. too short: budgets under one forward alone, there
and back. answered: in time, of the calls that are not too short. refused: DEADLINE_EXCEEDED in
time. late: neither in time, and by how much at most. by the machine: late, but in time less
the waits for a core. right and after: of answers in time."""


@dataclass
class Course:
    """Everything asked under one load."""

    title: str
    outcomes: dict[float, list[Outcome]] = field(default_factory=dict)


@dataclass
class Bench:
    """The worker and the questions."""

    stub: InferenceServiceStub
    waits: Waits
    questions: list[Question]
    by_deadline: bool

    async def ask(self, number: int, budget: float = NO_BUDGET) -> Outcome:
        """One of the questions."""
        question = self.questions[number]
        return await ask(self.stub, self.waits, question, budget, by_deadline=self.by_deadline)

    async def one_at_a_time(self) -> Course:
        """Each question in its natural time, the quicker of two, then in each share of it."""
        course = Course("one at a time", {share: [] for share in SHARES})
        for number in range(len(self.questions)):
            runs = [await self.ask(number) for _ in range(2)]
            natural = min(runs, key=lambda run: run.seconds)
            course.outcomes[1.0].append(natural)
            for share in SHARES[1:]:
                course.outcomes[share].append(await self.ask(number, share * natural.seconds))
        return course

    async def arriving(self, per_second: float) -> Course:
        """The questions as a stream of calls, again for each share with the same arrivals."""
        course = Course(f"arriving, {per_second:.0f} a second")
        budgets = [NO_BUDGET] * len(self.questions)
        luck = random.Random(0)
        gaps = [luck.expovariate(per_second) for _ in budgets]
        for share in SHARES:
            found = await self._stream(gaps, budgets)
            course.outcomes[share] = found
            following = SHARES[min(SHARES.index(share) + 1, len(SHARES) - 1)]
            natural = course.outcomes[1.0]
            budgets = [following * outcome.seconds for outcome in natural]
        return course

    async def _stream(self, gaps: list[float], budgets: list[float]) -> list[Outcome]:
        tasks = []
        async with asyncio.TaskGroup() as group:
            for number, (gap, budget) in enumerate(zip(gaps, budgets, strict=True)):
                await asyncio.sleep(gap)
                tasks.append(group.create_task(self.ask(number, budget)))
        return [task.result() for task in tasks]


async def run(mesh: MeshRecord, items: int, load: float, *, by_deadline: bool) -> None:
    """Measures the mesh's diffusion worker and prints the tables."""
    node = mesh.nodes[0]
    async with open_channel(node.address) as channel:
        questions = list(golden_questions(items))
        bench = Bench(InferenceServiceStub(channel), Waits(node.pid), questions, by_deadline)
        for question in questions[:WARM_UP]:
            await send(bench.stub, question)
        alone = await bench.one_at_a_time()
        least = [first_forward_of(outcome) for outcome in alone.outcomes[1.0]]
        natural = statistics.mean(outcome.seconds for outcome in alone.outcomes[1.0])
        stream = await bench.arriving(load / natural)
    print(LEGEND)
    names = [question.name for question in questions]
    for course in (alone, stream):
        print("\n".join(table(course, names, least)))


def table(course: Course, names: list[str], least: list[float]) -> Iterator[str]:
    """Markdown lines of one load."""
    yield f"\n{course.title}\n\n{HEAD}\n{'|---' * (HEAD.count('|') - 1)}|"
    for share, outcomes in course.outcomes.items():
        for name in (*SETS, "all"):
            chosen = [i for i, other in enumerate(names) if name in (other, "all")]
            yield row(share, name, [outcomes[i] for i in chosen], [least[i] for i in chosen])
    waits = [one.waited / one.seconds for outcomes in course.outcomes.values() for one in outcomes]
    yield (
        f"\nThe engine's thread was ready and had no core for {100 * statistics.mean(waits):.0f} % "
        f"of a call's time on average, {100 * statistics.quantiles(waits, n=100)[98]:.0f} % in the "
        "worst hundredth."
    )


def row(share: float, name: str, outcomes: list[Outcome], least: list[float]) -> str:
    """One line of the table."""
    budgets = [one.seconds if one.budget == NO_BUDGET else one.budget for one in outcomes]
    fitting = [one for one, need in zip(outcomes, least, strict=True) if one.budget >= need]
    answers = [(one, one.answer) for one in outcomes if one.answered and one.answer is not None]
    late = [one for one in outcomes if not one.in_time]
    worst = max((one.seconds - one.budget for one in late), default=0.0)
    cells = [
        f"{share:.0%}",
        f"{1000 * statistics.median(budgets):.0f}",
        name,
        str(len(outcomes)),
        str(len(outcomes) - len(fitting)),
        percent(one.answered for one in fitting),
        str(sum(one.in_time and one.answer is None for one in outcomes)),
        f"{len(late)} ({1000 * worst:.0f} ms)" if late else "0",
        str(sum(one.late_by_the_machine for one in late)),
        percent(one.right for one, _ in answers),
        percent(one.valid for one, _ in answers),
        percent(answer.best_effort for _, answer in answers),
        f"{statistics.mean(a.usage.forward_passes for _, a in answers):.1f}" if answers else "-",
    ]
    return f"| {' | '.join(cells)} |"


def percent(flags: Iterable[bool]) -> str:
    """Their share that is true; a dash where there are none."""
    found = list(flags)
    return f"{100 * statistics.mean(found):.1f}" if found else "-"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", default=STORE, type=Path)
    parser.add_argument("--items", type=int, default=40, help="of each set")
    parser.add_argument("--load", type=float, default=1.0, help="calls per natural time alone")
    parser.add_argument("--by-deadline", action="store_true", help="instead of latency_budget")
    chosen = parser.parse_args()

    async def measure(mesh: MeshRecord) -> None:
        await run(mesh, chosen.items, chosen.load, by_deadline=chosen.by_deadline)

    with tempfile.TemporaryDirectory(prefix="braid-bench-") as folder:
        nodes = {"diffusion": 1}
        options = MeshOptions(Path(folder), chosen.store, nodes, durable=False)
        asyncio.run(with_mesh(options, screen(), measure))


if __name__ == "__main__":
    main()
