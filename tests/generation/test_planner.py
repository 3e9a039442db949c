"""Jobs: defaults, limits and what a model cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from braid.config.v1.config_pb2 import Group
from services.chassis.errors import InvalidRequest, LimitExceeded, UnsupportedParameter
from services.generation.limits import Limits
from services.generation.planner import Plan
from services.generation.types import (
    Constraint,
    Denoising,
    Edit,
    Infill,
    Paradigm,
    Sampling,
    Thinking,
)
from tests.generation.requests import LIMITS, planner, request

DIFFUSION, AUTOREGRESSIVE = Paradigm.DIFFUSION, Paradigm.AUTOREGRESSIVE
BOTH = pytest.mark.parametrize("paradigm", [DIFFUSION, AUTOREGRESSIVE])


def plan(paradigm: Paradigm, source: Any = "hello", limits: Limits = LIMITS, **fields: Any) -> Plan:
    return planner(paradigm).plan(request(source, **fields), limits)


def refused(kind: type[InvalidRequest], paradigm: Paradigm, **fields: Any) -> str:
    with pytest.raises(kind) as caught:
        plan(paradigm, **fields)
    assert caught.type is kind
    return caught.value.violations[0].field


@BOTH
def test_defaults_are_filled_in(paradigm: Paradigm) -> None:
    """Without a word from the caller the group's and the model's defaults hold."""
    job = plan(paradigm).job
    assert (job.max_new_tokens, job.temperature, job.top_p, job.top_k) == (64, 0.0, 1.0, 0)
    assert job.seed >= 0
    assert (job.denoising is not None) is (paradigm is DIFFUSION)


@BOTH
def test_given_values_are_kept(paradigm: Paradigm) -> None:
    """What the caller sets is what the engine is asked for."""
    sampling = Sampling(5, 0.5, 0.9, 7, 11, ("stop",))
    job = plan(paradigm, sampling=sampling).job
    assert (
        Sampling(job.max_new_tokens, job.temperature, job.top_p, job.top_k, job.seed, job.stop)
        == sampling
    )


@BOTH
def test_fresh_seeds_differ(paradigm: Paradigm) -> None:
    """Two calls without a seed get different ones."""
    assert plan(paradigm).job.seed != plan(paradigm).job.seed


@BOTH
def test_prompt_and_answer_must_fit_the_context(paradigm: Paradigm) -> None:
    """Up to the context's last token a request is taken; one more is refused before compute."""
    limits = LIMITS.under(Group(max_new_tokens=256))
    prompt = "x" * 232  # 234 tokens with its marks, of 256
    job = plan(paradigm, prompt, limits, sampling=Sampling(max_new_tokens=22)).job
    assert len(job.prompt_ids) + job.max_new_tokens == 256
    field = refused(
        LimitExceeded, paradigm, source=prompt, limits=limits, sampling=Sampling(max_new_tokens=23)
    )
    assert field == "sampling.max_new_tokens"


@BOTH
def test_unset_length_is_what_the_context_leaves(paradigm: Paradigm) -> None:
    """A long prompt without max_new_tokens gets the rest of the context."""
    assert plan(paradigm, "x" * 240).job.max_new_tokens == 14


@BOTH
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"sampling": Sampling(max_new_tokens=65)}, "sampling.max_new_tokens"),
        ({"sampling": Sampling(max_new_tokens=2**31 - 1)}, "sampling.max_new_tokens"),
        ({"thinking": Thinking(enabled=True, max_tokens=65)}, "thinking.max_tokens"),
        ({"source": "x" * 300}, "prompt"),
        (
            {
                "source": Edit("abc", "", ((0, 1), (1, 2), (2, 3))),
                "sampling": Sampling(max_new_tokens=2),
            },
            "edit.spans",
        ),
    ],
)
def test_over_the_limit_is_refused(paradigm: Paradigm, fields: Any, field: str) -> None:
    """What asks for more than a limit is refused with its name, never cut silently."""
    assert refused(LimitExceeded, paradigm, **fields) == field


def test_steps_over_the_limit_are_refused() -> None:
    """max_steps above the group's limit is refused."""
    assert refused(LimitExceeded, DIFFUSION, denoising=Denoising(17)) == "diffusion.max_steps"


@pytest.mark.parametrize(
    ("denoising", "field"),
    [
        (Denoising(max_steps=4), "diffusion.max_steps"),
        (Denoising(block_length=8), "diffusion.block_length"),
        (Denoising(confidence_threshold=0.5), "diffusion.confidence_threshold"),
        (Denoising(strategy="threshold"), "diffusion.strategy"),
    ],
)
def test_autoregressive_refuses_denoising(denoising: Denoising, field: str) -> None:
    """A parameter of diffusion is refused by an autoregressive model, not ignored."""
    assert refused(UnsupportedParameter, AUTOREGRESSIVE, denoising=denoising) == field


def test_empty_denoising_is_fine_for_both() -> None:
    """A diffusion message that asks for nothing is no reason to refuse."""
    assert plan(AUTOREGRESSIVE, denoising=Denoising()).job.denoising is None


def test_block_length_must_be_the_models() -> None:
    """Only the block length that the model was trained for is taken."""
    assert plan(DIFFUSION, denoising=Denoising(block_length=8)).job.denoising is not None
    field = refused(UnsupportedParameter, DIFFUSION, denoising=Denoising(block_length=16))
    assert field == "diffusion.block_length"


def test_threshold_comes_from_call_then_group_then_model() -> None:
    """The nearest word on the confidence threshold holds."""
    group = LIMITS.under(Group(confidence_threshold=0.75))

    def threshold(limits: Limits, asked: float | None = None) -> float:
        job = plan(DIFFUSION, limits=limits, denoising=Denoising(confidence_threshold=asked)).job
        assert job.denoising is not None
        return job.denoising.confidence_threshold

    assert threshold(LIMITS) == 0.5
    assert threshold(group) == 0.75
    assert threshold(group, 0.25) == 0.25


@BOTH
@pytest.mark.parametrize(
    "constraint",
    [Constraint("regex", "a"), Constraint("choice", options=("a",)), Constraint("template", "a")],
)
def test_constraint_that_is_not_kept_to_is_refused(
    paradigm: Paradigm, constraint: Constraint
) -> None:
    """A form that this worker cannot promise is refused by name."""
    field = refused(UnsupportedParameter, paradigm, constraint=constraint)
    assert field == f"constraint.{constraint.kind}"


@pytest.mark.parametrize("source", [Infill("a", "b"), Edit("a", "b")])
def test_no_reasoning_before_infill_and_edit(source: Any) -> None:
    """Thinking on is refused where the answer cannot begin with reasoning; off is fine."""
    thinking = Thinking(enabled=True)
    field = refused(UnsupportedParameter, AUTOREGRESSIVE, source=source, thinking=thinking)
    assert field == "thinking.enabled"
    assert plan(AUTOREGRESSIVE, source, thinking=Thinking(enabled=False))


def test_infill_leaves_room_for_its_answer() -> None:
    """A long infill is cut so that max_new_tokens fit behind it."""
    asked = plan(DIFFUSION, Infill("x" * 999, "y"), sampling=Sampling(max_new_tokens=40))
    assert len(asked.job.prompt_ids) == 256 - 40
    assert asked.truncated
    unset = plan(DIFFUSION, Infill("x" * 999, "y"))
    assert unset.job.max_new_tokens == 64


def test_group_lowers_limits_and_cannot_raise_what_is_set_aside() -> None:
    """Hot limits replace the settings'; slots and context only shrink."""
    hot = LIMITS.under(
        Group(max_new_tokens=8, max_steps=2, queue_length=0, max_batch_size=99, max_context=9999)
    )
    assert (hot.max_new_tokens, hot.max_steps, hot.queue_length) == (8, 2, 0)
    assert (hot.max_batch_size, hot.max_context) == (4, 256)
    assert LIMITS.under(Group(max_batch_size=2, max_context=100)).max_context == 100
    assert LIMITS.under(Group()) == LIMITS
