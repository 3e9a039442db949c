"""Requests as they come off the wire, answers as they go onto it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.errors import InvalidRequest
from services.chassis.strategies import PARAMETER_OF
from services.generation import wire
from services.generation.types import (
    Chat,
    Delta,
    Denoising,
    Edit,
    Finished,
    FinishReason,
    Infill,
    Paradigm,
    Priority,
    Prompt,
    Request,
    Sampling,
    ServedBy,
    Thinking,
    Timing,
    Usage,
)

NODE = ServedBy("w1", "diffusion", "m", "v1", Paradigm.DIFFUSION)


def read(message: pb.GenerateRequest, **options: Any) -> Request:
    return wire.from_proto(message, **({"now": 100.0} | options))


def faults(message: pb.GenerateRequest) -> set[str]:
    with pytest.raises(InvalidRequest) as caught:
        read(message)
    return {violation.field for violation in caught.value.violations}


def with_sampling(**fields: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(prompt="p", sampling=pb.Sampling(**fields))


def with_diffusion(**fields: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(prompt="p", diffusion=pb.Diffusion(**fields))


def with_constraint(**fields: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(prompt="p", constraint=pb.Constraint(**fields))


def with_chat(*turns: tuple[str, str]) -> pb.GenerateRequest:
    messages = [pb.ChatMessage(role=role, content=content) for role, content in turns]
    return pb.GenerateRequest(chat=pb.Chat(messages=messages))


def with_edit(text: str, instruction: str, *spans: tuple[int, int]) -> pb.GenerateRequest:
    parts = [pb.Span(start=start, end=end) for start, end in spans]
    return pb.GenerateRequest(edit=pb.Edit(text=text, instruction=instruction, spans=parts))


def of_later_contract(**enums: Any) -> pb.GenerateRequest:
    """A request with enum values that this version does not know."""
    return pb.GenerateRequest(prompt="p", **enums)


NAN, INFINITE = float("nan"), float("inf")

BAD = [
    (pb.GenerateRequest(), "input"),
    (pb.GenerateRequest(prompt=""), "prompt"),
    (pb.GenerateRequest(prompt=" \n\t"), "prompt"),
    (with_chat(), "chat.messages"),
    (with_chat(("robot", "x")), "chat.messages[0].role"),
    (with_chat(("user", " ")), "chat.messages[0].content"),
    (with_chat(("user", "a"), ("assistant", "b")), "chat.messages[1].role"),
    (with_chat(*[("user", "x")] * 1025), "chat.messages"),
    (pb.GenerateRequest(infill=pb.Infill()), "infill"),
    (with_edit("", "do"), "edit.text"),
    (with_edit("text", " "), "edit.instruction"),
    (with_edit("text", "", (2, 1)), "edit.spans[0]"),
    (with_edit("text", "", (0, 5)), "edit.spans[0]"),
    (with_edit("text", "", (0, 2), (1, 3)), "edit.spans[1]"),
    (with_edit("text", "", (2, 3), (0, 1)), "edit.spans[1]"),
    (with_edit("t" * 99, "", *((i, i + 1) for i in range(65))), "edit.spans"),
    (with_sampling(max_new_tokens=0), "sampling.max_new_tokens"),
    (with_sampling(temperature=-0.1), "sampling.temperature"),
    (with_sampling(temperature=2.1), "sampling.temperature"),
    (with_sampling(temperature=NAN), "sampling.temperature"),
    (with_sampling(top_p=0), "sampling.top_p"),
    (with_sampling(top_p=1.5), "sampling.top_p"),
    (with_sampling(top_p=NAN), "sampling.top_p"),
    (with_sampling(top_p=INFINITE), "sampling.top_p"),
    (with_sampling(seed=-1), "sampling.seed"),
    (with_sampling(seed=-(2**63)), "sampling.seed"),
    (with_sampling(stop=["a", ""]), "sampling.stop[1]"),
    (with_sampling(stop=["é" * 129]), "sampling.stop[0]"),
    (with_sampling(stop=["x"] * 10_000), "sampling.stop"),
    (with_diffusion(max_steps=0), "diffusion.max_steps"),
    (with_diffusion(block_length=0), "diffusion.block_length"),
    (with_diffusion(confidence_threshold=0), "diffusion.confidence_threshold"),
    (with_diffusion(confidence_threshold=NAN), "diffusion.confidence_threshold"),
    (with_diffusion(factor=0), "diffusion.factor"),
    (with_diffusion(factor=64.1), "diffusion.factor"),
    (with_diffusion(factor=NAN), "diffusion.factor"),
    (with_diffusion(entropy_bound=-0.1), "diffusion.entropy_bound"),
    (with_diffusion(entropy_bound=INFINITE), "diffusion.entropy_bound"),
    (with_diffusion(entropy_bound=NAN), "diffusion.entropy_bound"),
    (with_diffusion(strategy="luck"), "diffusion.strategy"),
    (with_diffusion(strategy=""), "diffusion.strategy"),
    (pb.GenerateRequest(prompt="p", constraint=pb.Constraint()), "constraint"),
    (with_constraint(json_schema=""), "constraint.json_schema"),
    (with_constraint(json_schema=" " * 65_537), "constraint.json_schema"),
    (with_constraint(regex="a" * 4097), "constraint.regex"),
    (with_constraint(choice=pb.Choice()), "constraint.choice.options"),
    (with_constraint(choice=pb.Choice(options=["a", ""])), "constraint.choice.options"),
    (with_constraint(choice=pb.Choice(options=["a", "a"])), "constraint.choice.options"),
    (with_constraint(template=""), "constraint.template"),
    (pb.GenerateRequest(prompt="p", thinking=pb.Thinking(max_tokens=0)), "thinking.max_tokens"),
    (of_later_contract(task=99), "task"),
    (of_later_contract(priority=99), "priority"),
    (pb.GenerateRequest(prompt="p", request_id="a\nb"), "request_id"),
    (pb.GenerateRequest(prompt="p", request_id="x" * 129), "request_id"),
    (pb.GenerateRequest(prompt="p", request_id="é"), "request_id"),
    (pb.GenerateRequest(prompt="p", labels={str(i): "" for i in range(17)}), "labels"),
    (pb.GenerateRequest(prompt="p", labels={"": "x"}), "labels"),
    (pb.GenerateRequest(prompt="p", labels={"k": "v" * 64}), "labels"),
    (pb.GenerateRequest(prompt="p", latency_budget=Duration()), "latency_budget"),
    (pb.GenerateRequest(prompt="p", latency_budget=Duration(seconds=-1)), "latency_budget"),
]


@pytest.mark.parametrize(("message", "field"), BAD)
def test_bad_field_is_named(message: pb.GenerateRequest, field: str) -> None:
    """Each bad field is refused and named by its path in the contract."""
    assert field in faults(message)


def test_all_faults_at_once() -> None:
    """A request with several bad fields names all of them."""
    message = pb.GenerateRequest(
        prompt=" ",
        sampling=pb.Sampling(max_new_tokens=0, top_p=NAN, seed=-5),
        diffusion=pb.Diffusion(strategy="luck"),
    )
    assert faults(message) == {
        "prompt",
        "sampling.max_new_tokens",
        "sampling.top_p",
        "sampling.seed",
        "diffusion.strategy",
    }


def test_message_of_refusal_never_quotes_text() -> None:
    """What a caller wrote in a text field is in no error message."""
    with pytest.raises(InvalidRequest) as caught:
        read(with_chat(("SECRET-123", " ")))
    assert "SECRET-123" not in caught.value.message


def test_unset_differs_from_zero() -> None:
    """An unset optional field is None; one set to zero is zero."""
    assert read(pb.GenerateRequest(prompt="p")).sampling == Sampling()
    zeros = read(with_sampling(temperature=0, top_k=0, seed=0)).sampling
    assert (zeros.temperature, zeros.top_k, zeros.seed) == (0.0, 0, 0)


def test_largest_seed_is_kept() -> None:
    """Seeds up to 2^63 - 1 are taken as they are."""
    assert read(with_sampling(seed=2**63 - 1)).sampling.seed == 2**63 - 1


def test_nul_and_odd_characters_are_kept() -> None:
    """NUL, BOM and direction marks are text like any other."""
    text = "red\0blue\ufeff\u202e end"
    assert read(pb.GenerateRequest(prompt=text)).input == Prompt(text)


def test_request_id_comes_from_field_then_metadata_then_luck() -> None:
    """The field wins over the metadata; without either there is a fresh id."""
    named = pb.GenerateRequest(prompt="p", request_id="mine")
    bare = pb.GenerateRequest(prompt="p")
    assert read(named, metadata_request_id="theirs").request_id == "mine"
    assert read(bare, metadata_request_id="theirs").request_id == "theirs"
    assert read(bare).request_id != read(bare).request_id


def test_times_are_counted_from_arrival() -> None:
    """Deadline and answer time are arrival plus what the caller can wait."""
    message = pb.GenerateRequest(prompt="p", latency_budget=Duration(nanos=500_000_000))
    request = read(message, time_remaining_s=2.0)
    assert (request.arrived, request.deadline, request.answer_by) == (100.0, 102.0, 100.5)


def test_empty_diffusion_asks_for_nothing() -> None:
    """A diffusion message without fields leaves everything to the defaults."""
    assert read(with_diffusion()).denoising == Denoising()
    assert read(pb.GenerateRequest(prompt="p")).denoising is None


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
words = text.filter(lambda value: bool(value.strip()))
tokens = st.integers(1, 2**32 - 1)


@st.composite
def messages(draw: st.DrawFn) -> pb.GenerateRequest:
    """Valid requests of every shape."""
    inputs: list[st.SearchStrategy[dict[str, Any]]] = [
        st.fixed_dictionaries({"prompt": words}),
        st.builds(lambda a, b: {"infill": pb.Infill(prefix=a, suffix=b)}, words, text),
        st.builds(lambda a, b: {"edit": pb.Edit(text=a, instruction=b)}, words, words),
        st.builds(lambda a: {"chat": with_chat(("user", a)).chat}, words),
    ]
    sampling = st.builds(
        pb.Sampling,
        max_new_tokens=st.none() | tokens,
        temperature=st.none() | st.floats(0, 2, width=32),
        top_p=st.none() | st.floats(0.125, 1, width=32),
        top_k=st.none() | st.integers(0, 2**32 - 1),
        seed=st.none() | st.integers(0, 2**63 - 1),
        stop=st.lists(text.filter(bool), max_size=16),
    )
    diffusion = st.builds(
        pb.Diffusion,
        max_steps=st.none() | tokens,
        block_length=st.none() | tokens,
        confidence_threshold=st.none() | st.floats(0.125, 1, width=32),
        strategy=st.none() | st.sampled_from(list(PARAMETER_OF)),
        factor=st.none() | st.floats(0.125, 64, width=32),
        entropy_bound=st.none() | st.floats(0, 64, width=32),
        drafts=st.booleans(),
    )
    enums: dict[str, Any] = {
        "task": draw(st.sampled_from(pb.Task.values())),
        "priority": draw(st.sampled_from(pb.Priority.values())),
    }
    return pb.GenerateRequest(
        **draw(st.one_of(inputs)),
        sampling=draw(sampling),
        diffusion=draw(diffusion),
        **enums,
        thinking=pb.Thinking(
            enabled=draw(st.none() | st.booleans()),
            max_tokens=draw(st.none() | tokens),
            include=draw(st.booleans()),
        ),
        labels=draw(st.dictionaries(st.sampled_from(["a", "b", "session"]), st.just("x"))),
        model=draw(st.sampled_from(["", "m"])),
    )


@given(messages())
@settings(max_examples=150, deadline=None)
def test_valid_request_loses_nothing(message: pb.GenerateRequest) -> None:
    """Every field of a valid request is in the Request, bit for bit."""
    request = read(pb.GenerateRequest.FromString(message.SerializeToString()))
    assert _sampling(request.sampling) == message.sampling
    assert request.denoising is not None
    assert pb.Diffusion(**asdict(request.denoising)) == message.diffusion
    assert _thinking(request.thinking) == message.thinking
    assert pb.Task.Value(request.task) == message.task
    assert request.model == message.model
    assert request.priority is (
        Priority(message.priority - 1) if message.priority else Priority.NORMAL
    )
    assert _input(request) == (
        message.WhichOneof("input"),
        getattr(message, str(message.WhichOneof("input"))),
    )


def _sampling(sampling: Sampling) -> pb.Sampling:
    fields = {name: getattr(sampling, name) for name in ("max_new_tokens", "temperature")}
    fields |= {name: getattr(sampling, name) for name in ("top_p", "top_k", "seed", "stop")}
    return pb.Sampling(**fields)


def _thinking(thinking: Thinking) -> pb.Thinking:
    return pb.Thinking(
        enabled=thinking.enabled, max_tokens=thinking.max_tokens, include=thinking.include
    )


def _input(request: Request) -> tuple[str, Any]:
    match request.input:
        case Prompt(prompt):
            return "prompt", prompt
        case Infill(prefix, suffix):
            return "infill", pb.Infill(prefix=prefix, suffix=suffix)
        case Edit(edited, instruction):
            return "edit", pb.Edit(text=edited, instruction=instruction)
        case Chat(turns):
            return "chat", with_chat(*((turn.role, turn.content) for turn in turns)).chat


@given(text.filter(bool), st.integers(0, 1000), st.integers(1, 64), st.integers(4, 64))
@settings(max_examples=150, deadline=None)
def test_delta_in_pieces_is_the_delta(value: str, block: int, steps: int, most: int) -> None:
    """A delta's messages joined are its text, none longer than asked, none cut in a character."""
    parts = [part.delta for part in wire.delta_to_proto(Delta(value, block, steps), most)]
    assert "".join(part.text for part in parts) == value
    assert all(len(part.text.encode()) <= most for part in parts)
    assert {(part.block_index, part.denoise_steps) for part in parts} == {(block, steps)}


counts = st.integers(0, 2**32 - 1)
seconds = st.floats(0, 1e6)


@given(
    st.builds(
        Finished,
        finish_reason=st.sampled_from(FinishReason),
        usage=st.builds(
            Usage, *[counts] * 5, st.floats(0, 64, width=32), st.booleans(), *[counts] * 3
        ),
        timing=st.builds(Timing, *[seconds] * 5),
        thinking=text,
        seed=st.integers(0, 2**63 - 1),
        best_effort=st.booleans(),
        repairs=st.integers(0, 3),
    )
)
@settings(max_examples=100, deadline=None)
def test_end_of_answer_loses_nothing(finished: Finished) -> None:
    """Every figure of the end is in the message, and unary says the same as a stream."""
    request = read(
        pb.GenerateRequest(prompt="p", request_id="r", thinking=pb.Thinking(include=True))
    )
    end = wire.finished_to_proto(finished, request, NODE).finished
    usage = Usage(
        end.usage.prompt_tokens,
        end.usage.completion_tokens,
        end.usage.thinking_tokens,
        end.usage.denoise_steps,
        end.usage.forward_passes,
        end.usage.tokens_per_forward,
        end.usage.input_truncated,
        end.usage.blocks,
        end.usage.forced_commits,
        end.usage.discarded_tokens,
    )
    assert usage == finished.usage
    assert (end.thinking, end.seed, end.repairs) == (
        finished.thinking,
        finished.seed,
        finished.repairs,
    )
    assert end.best_effort == finished.best_effort
    assert end.timing.total.ToNanoseconds() / 1e9 == pytest.approx(finished.timing.total, abs=1e-6)
    assert (end.served_by.node_id, end.served_by.paradigm) == ("w1", pb.PARADIGM_DIFFUSION)

    unary = wire.response_to_proto("text", finished, request, NODE)
    for field in pb.Finished.DESCRIPTOR.fields:
        assert getattr(unary, field.name) == getattr(end, field.name)
    assert unary.text == "text"


def test_reasoning_stays_here_unless_asked_for() -> None:
    """Without thinking.include the reasoning is not sent."""
    request = read(pb.GenerateRequest(prompt="p"))
    end = wire.finished_to_proto(Finished(FinishReason.STOP, thinking="t"), request, NODE)
    assert end.finished.thinking == ""
