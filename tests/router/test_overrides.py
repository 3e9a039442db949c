"""Overrides: upper limits that a rule sets behind a request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from braid.config.v1.config_pb2 import Group
from braid.inference.v1 import inference_pb2 as pb
from services.router.overrides import UNCHANGED, Overrides
from tests.router.tables import code

LIMIT = st.one_of(st.none(), st.integers(1, 1024))


@given(asked=LIMIT, limit=LIMIT, cap=LIMIT)
def test_the_least_of_three_holds(asked: int | None, limit: int | None, cap: int | None) -> None:
    """The worker sees the rule's limit, the group's cap under it, and never more than asked."""
    record = Group(group="g", max_steps=cap) if cap else None
    message = pb.GenerateRequest(prompt="x")
    if asked:
        message.diffusion.max_steps = asked
    permitted = Overrides(max_steps=limit).within(record)
    changing = permitted.changing(code(max_steps=asked), diffusion=True)
    sent = pb.GenerateRequest.FromString(message.SerializeToString() + changing.as_bytes())
    expected = [value for value in (asked, limit and min(limit, cap or limit)) if value]
    assert sent.diffusion.max_steps == min(expected, default=0)
    assert sent.prompt == "x"


def test_other_fields_of_the_same_message_stay() -> None:
    """Appended fields are merged into what the caller set beside them."""
    message = pb.GenerateRequest(sampling=pb.Sampling(seed=7, stop=["x"], max_new_tokens=99))
    changing = Overrides(max_new_tokens=5).changing(code(max_new_tokens=99), diffusion=True)
    sent = pb.GenerateRequest.FromString(message.SerializeToString() + changing.as_bytes())
    assert sent.sampling == pb.Sampling(seed=7, stop=["x"], max_new_tokens=5)


def test_steps_are_left_to_diffusion() -> None:
    """An autoregressive node, which refuses denoising parameters, gets none."""
    assert Overrides(max_steps=4).changing(code(), diffusion=False) == UNCHANGED
