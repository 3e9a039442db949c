"""Golden requests over a socket, with and without a time to keep to, as their caller sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf import json_format

from braid.inference.v1 import inference_pb2 as pb
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from deploy.models.check import check_output
from deploy.models.golden_sets import read_golden_set

SETS = ("json", "schema", "edit", "chain", "action")
"""Golden sets; schema is json with each answer kept to its schema."""
CALL_S = 60.0
NO_BUDGET = float("inf")


@dataclass(frozen=True, slots=True)
class Question:
    """One golden request and what its answer is judged by."""

    name: str
    request: pb.GenerateRequest
    item: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a caller got; seconds by its own clock."""

    seconds: float
    waited: float
    """Seconds of them in which the engine's thread was ready to run and had no core."""
    budget: float = NO_BUDGET
    answer: pb.GenerateResponse | None = None
    """None: DEADLINE_EXCEEDED."""
    right: bool = False
    valid: bool = False

    @property
    def in_time(self) -> bool:
        """Whether the caller had an answer or a refusal by then."""
        return self.seconds <= self.budget

    @property
    def answered(self) -> bool:
        """Whether it was an answer, and in time."""
        return self.in_time and self.answer is not None

    @property
    def late_by_the_machine(self) -> bool:
        """Whether it would have been in time had the engine always had a core."""
        return not self.in_time and self.seconds - self.waited <= self.budget


class Waits:
    """How long the engine's thread has waited for a core, from the kernel's books.

    It is the one that works most between the making of this and the first question.
    """

    def __init__(self, pid: int) -> None:
        tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
        self._before = {task: _worked(task) for task in tasks}

    @cached_property
    def _engine(self) -> Path:
        before = self._before
        return max(before, key=lambda task: _worked(task) - before[task])

    def seconds(self) -> float:
        """Since the thread's start."""
        return int(self._engine.read_text().split()[1]) / 1e9


def _worked(task: Path) -> int:
    """Nanoseconds that a thread has computed."""
    return int(task.read_text().split()[0])


def questions(items: int) -> Iterator[Question]:
    """``items`` of each set, sets taking turns."""
    sets = {name: read_golden_set("json" if name == "schema" else name) for name in SETS}
    for number in range(items):
        for name in SETS:
            item = sets[name][number]
            message = {"task": item["task"], **item["input"]}
            if name == "schema":
                message["constraint"] = {"json_schema": item["schema"]}
            yield Question(name, json_format.ParseDict(message, pb.GenerateRequest()), item)


async def send(stub: InferenceServiceStub, question: Question) -> None:
    """One call that nobody measures."""
    await stub.Generate(question.request, timeout=CALL_S)


async def ask(
    stub: InferenceServiceStub,
    waits: Waits,
    question: Question,
    budget: float = NO_BUDGET,
    *,
    by_deadline: bool = False,
) -> Outcome:
    """One call; the budget is its ``latency_budget``, or else the deadline of the call itself."""
    request, timeout = pb.GenerateRequest(), CALL_S
    request.CopyFrom(question.request)
    if budget < NO_BUDGET and by_deadline:
        timeout = budget
    elif budget < NO_BUDGET:
        request.latency_budget.FromNanoseconds(int(1e9 * budget))
    waited, began = waits.seconds(), time.perf_counter()
    try:
        answer = await stub.Generate(request, timeout=timeout)
    except grpc.aio.AioRpcError as error:
        seconds = time.perf_counter() - began
        if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
            raise
        return Outcome(seconds, waits.seconds() - waited, budget)
    seconds = time.perf_counter() - began
    return judged(question, answer, seconds, waits.seconds() - waited, budget)


def judged(
    question: Question, answer: pb.GenerateResponse, seconds: float, waited: float, budget: float
) -> Outcome:
    """An answer by its item's own measure."""
    item = question.item
    score = check_output(item["check"], answer.text, item["expect"], item.get("schema", ""))
    return Outcome(seconds, waited, budget, answer, score.right, score.valid)


def first_forward(outcome: Outcome) -> float:
    """Seconds that an answer takes its caller at least: one forward, there and back."""
    assert outcome.answer is not None
    timing = outcome.answer.timing
    inside = timing.total.ToNanoseconds() - timing.prefill.ToNanoseconds()
    return outcome.seconds - inside / 1e9
