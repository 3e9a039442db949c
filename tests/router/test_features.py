"""Reading a request: task by signals, needs, latency budget, size and work."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.errors import InvalidRequest
from services.generation.wire import from_proto
from services.router.features import Features, features_of

CHAT = pb.Chat(messages=[pb.ChatMessage(role="user", content="hi")])
SCHEMA = pb.Constraint(json_schema="{}")


def read(message: pb.GenerateRequest, remaining_s: float | None = None) -> Features:
    request = from_proto(message, now=5.0, time_remaining_s=remaining_s)
    return features_of(message, request)


@pytest.mark.parametrize(
    ("message", "task"),
    [
        (pb.GenerateRequest(prompt="x", constraint=SCHEMA), pb.TASK_STRUCTURED_OUTPUT),
        (pb.GenerateRequest(chat=CHAT, constraint=SCHEMA), pb.TASK_STRUCTURED_OUTPUT),
        (pb.GenerateRequest(infill=pb.Infill(prefix="x")), pb.TASK_CODE_COMPLETION),
        (pb.GenerateRequest(edit=pb.Edit(text="x", instruction="y")), pb.TASK_TEXT_EDITING),
        (pb.GenerateRequest(prompt="x", thinking=pb.Thinking(enabled=True)), pb.TASK_REASONING),
        (pb.GenerateRequest(chat=CHAT, thinking=pb.Thinking(enabled=True)), pb.TASK_REASONING),
        (pb.GenerateRequest(chat=CHAT), pb.TASK_CHAT),
    ],
)
def test_task_by_signals(message: pb.GenerateRequest, task: int) -> None:
    """A task left out is judged by the request's declared form."""
    assert read(message).task == task


def test_task_said_wins_over_signals() -> None:
    """A task that is said holds whatever the form."""
    message = pb.GenerateRequest(task=pb.TASK_MATH, infill=pb.Infill(prefix="x"))
    assert read(message).task == pb.TASK_MATH


def test_plain_prompt_without_task_is_refused() -> None:
    """A plain prompt says nothing of its task, and the error names the field."""
    with pytest.raises(InvalidRequest) as raised:
        read(pb.GenerateRequest(prompt="x", thinking=pb.Thinking(enabled=False)))
    assert [violation.field for violation in raised.value.violations] == ["task"]


@pytest.mark.parametrize(
    ("message", "needs"),
    [
        (pb.GenerateRequest(task=pb.TASK_CHAT, prompt="x"), set()),
        (pb.GenerateRequest(infill=pb.Infill(prefix="x")), {"infill"}),
        (pb.GenerateRequest(edit=pb.Edit(text="x", instruction="y")), {"edit"}),
        (pb.GenerateRequest(prompt="x", constraint=pb.Constraint(regex="a")), {"regex"}),
        (pb.GenerateRequest(chat=CHAT, sampling=pb.Sampling(seed=0)), {"seed"}),
        (
            pb.GenerateRequest(task=pb.TASK_CHAT, prompt="x", diffusion=pb.Diffusion(max_steps=2)),
            {"diffusion"},
        ),
        (pb.GenerateRequest(prompt="x", thinking=pb.Thinking(enabled=True)), {"thinking"}),
    ],
)
def test_needs(message: pb.GenerateRequest, needs: set[str]) -> None:
    """Each field that not every node can honour becomes a need."""
    assert read(message).needs == needs


@pytest.mark.parametrize(
    ("budget_s", "remaining_s", "nearer"),
    [(None, None, None), (2, None, 2.0), (None, 3.0, 3.0), (2, 3.0, 2.0), (4, 3.0, 3.0)],
)
def test_latency_budget_is_the_nearer(
    budget_s: int | None, remaining_s: float | None, nearer: float | None
) -> None:
    """Of the latency budget and the call's deadline the nearer one counts."""
    budget = None if budget_s is None else Duration(seconds=budget_s)
    message = pb.GenerateRequest(task=pb.TASK_CHAT, prompt="x", latency_budget=budget)
    assert read(message, remaining_s).latency_budget_s == nearer


def test_prompt_bytes_count_utf8() -> None:
    """The size of the input is counted in bytes, over all its parts."""
    assert read(pb.GenerateRequest(infill=pb.Infill(prefix="é", suffix="ab"))).prompt_bytes == 4


def test_session_is_a_label() -> None:
    """The label ``session`` is the session."""
    message = pb.GenerateRequest(chat=CHAT, labels={"session": "s1", "team": "a"})
    assert read(message).session == "s1"


def test_work_counts_blocks_times_steps_or_tokens() -> None:
    """A diffusion node needs a few forwards per block, an autoregressive one each token."""
    features = Features(pb.TASK_CHAT, max_new_tokens=64, max_steps=2, block_length=16)
    assert features.forwards(diffusion=True) == 4 * 2
    assert features.forwards(diffusion=False) == 64
