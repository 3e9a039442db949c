"""Answers of one sequence or more: constraints, spans, figures, cancellation."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.chassis.errors import ConstraintNotMet, DeadlineExceeded, QueueFull
from services.generation.answering import Answering, gathered
from services.generation.types import (
    Constraint,
    Delta,
    Edit,
    Event,
    Finished,
    FinishReason,
    Infill,
    Paradigm,
    Prompt,
    Sampling,
)
from tests.fakes.engine import ScriptedEngine, say
from tests.generation.requests import LIMITS, codec, planner, request

OBJECT = Constraint("json_schema", '{"type":"object","properties":{"a":{"type":"integer"}}}')
STEERED = {"paradigm": Paradigm.AUTOREGRESSIVE}
JUDGED = {"family": "masked_diffusion"}
"""A model whose answers are kept to a form by looking at them alone."""


async def answer(
    engine: ScriptedEngine, source: Any = "hi", card: dict[str, Any] = STEERED, **fields: Any
) -> list[Event]:
    plans = planner(**card)
    plan = plans.plan(request(source, **fields), LIMITS)
    async with aclosing(Answering(engine, plans).events(plan, LIMITS)) as events:
        return [event async for event in events]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def end_of(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


async def test_events_pass_as_they_come() -> None:
    """Without a constraint each delta is passed on by itself."""
    events = await answer(ScriptedEngine(say("abcd", pieces=2)))
    assert [event.text for event in events if isinstance(event, Delta)] == ["ab", "cd"]
    assert end_of(events).finish_reason is FinishReason.STOP


async def test_steered_text_passes_as_it_comes() -> None:
    """What an automaton let through is sent block by block."""
    events = await answer(ScriptedEngine(say('{"a":1}', pieces=3)), constraint=OBJECT)
    assert len(events) == 4
    assert text_of(events) == '{"a":1}'


async def test_steered_answer_that_breaks_its_form_is_an_alarm() -> None:
    """It is counted and the call fails: nothing like it may go unseen."""
    violations: list[None] = []
    plans = planner(**STEERED)
    plan = plans.plan(request(constraint=OBJECT), LIMITS)
    answering = Answering(ScriptedEngine(say("[1]")), plans, lambda: violations.append(None))
    with pytest.raises(ConstraintNotMet):
        await gathered(answering.events(plan, LIMITS))
    assert len(violations) == 1


async def test_judged_text_is_held_back_until_it_conforms() -> None:
    """Where nothing steers, the text comes at once, at the end, and only if it conforms."""
    events = await answer(ScriptedEngine(say('{"a":1}', pieces=3)), card=JUDGED, constraint=OBJECT)
    assert len(events) == 2
    assert text_of(events) == '{"a":1}'
    assert end_of(events).repairs == 0


async def test_answer_that_does_not_conform_is_tried_once_more() -> None:
    """A second try has another seed and some warmth; the end counts both tries' work."""
    engine = ScriptedEngine(say("[1]"), say("{}"))
    events = await answer(engine, card=JUDGED, constraint=OBJECT, sampling=Sampling(seed=7))
    first, second = engine.jobs
    assert text_of(events) == "{}"
    assert (first.seed, second.seed) == (7, 8)
    assert first.temperature == 0 < second.temperature
    end = end_of(events)
    assert (end.seed, end.repairs) == (7, 1)
    assert (end.usage.forward_passes, end.usage.completion_tokens) == (6, 2)
    assert end.usage.tokens_per_forward == pytest.approx(2 / 4)


async def test_answer_that_never_conforms_is_an_error() -> None:
    """After the second bad try the call fails, and no text was sent."""
    engine = ScriptedEngine(say("free"))
    with pytest.raises(ConstraintNotMet):
        await answer(engine, card=JUDGED, constraint=OBJECT)
    assert len(engine.jobs) == 2


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.DEADLINE])
async def test_truncated_json_is_passed_on_as_it_is(reason: FinishReason) -> None:
    """An answer that was cut short is neither repaired nor tried again, and says so."""
    engine = ScriptedEngine(say('{"a":', reason))
    events = await answer(engine, card=JUDGED, constraint=OBJECT)
    assert text_of(events) == '{"a":'
    assert end_of(events).finish_reason is reason
    assert len(engine.jobs) == 1


async def test_refusal_of_the_engine_reaches_the_caller() -> None:
    """What the engine refuses is what the caller gets."""
    with pytest.raises(QueueFull):
        await answer(ScriptedEngine(lambda _: [QueueFull("full")]))


async def test_closing_gives_the_job_up() -> None:
    """Closing the events frees the engine at once."""
    engine = ScriptedEngine(lambda _: [Delta("a")])
    plans = planner()
    events = Answering(engine, plans).events(plans.plan(request(), LIMITS), LIMITS)
    assert await anext(events) == Delta("a")
    await events.aclose()
    assert engine.given_up == engine.jobs


async def test_spans_are_filled_one_after_the_other() -> None:
    """Each span sees what was written before it; what lies between stays."""
    engine = ScriptedEngine(say("XX"), say("Y"))
    events = await answer(engine, Edit("one two three", "", ((0, 3), (8, 13))))
    assert text_of(events) == "XX two Y"
    shown = [codec().tokenizer.decode(list(job.prompt_ids)) for job in engine.jobs]
    assert shown == [" two three", "XX two "]
    assert end_of(events).usage.completion_tokens == 3
    blocks = [event.block_index for event in events if isinstance(event, Delta)]
    assert blocks == sorted(blocks)


async def test_instruction_leads_the_text_before_a_span() -> None:
    """What the caller asked for is in front of the model, and not in the answer."""
    engine = ScriptedEngine(say("X"))
    events = await answer(engine, Edit("ab", "Do it.", ((1, 2),)))
    assert codec().tokenizer.decode(list(engine.jobs[0].prompt_ids)) == "Do it.\na"
    assert text_of(events) == "aX"


async def test_spans_share_the_tokens() -> None:
    """All spans together take at most max_new_tokens, each at least one."""
    engine = ScriptedEngine(say("XX", FinishReason.LENGTH), say("YYY", FinishReason.LENGTH))
    source = Edit("a-b-c", "", ((0, 1), (4, 5)))
    events = await answer(engine, source, sampling=Sampling(max_new_tokens=5))
    assert [job.max_new_tokens for job in engine.jobs] == [2, 3]
    assert end_of(events).finish_reason is FinishReason.LENGTH


async def test_late_edit_keeps_the_remaining_spans() -> None:
    """Once time is up the rest of the text stays as it was."""
    engine = ScriptedEngine(say("X", FinishReason.DEADLINE))
    events = await answer(engine, Edit("a b c", "", ((0, 1), (2, 3))))
    assert text_of(events) == "X b c"
    assert end_of(events).finish_reason is FinishReason.DEADLINE
    assert len(engine.jobs) == 1


async def test_a_span_without_time_stays_as_it_was() -> None:
    """An edit whose time ends between two spans is answered with those that are filled."""
    engine = ScriptedEngine(say("X"), lambda _: [DeadlineExceeded("no time")])
    events = await answer(engine, Edit("one two three", "", ((0, 3), (4, 7))))
    assert text_of(events) == "X two three"
    assert end_of(events).finish_reason is FinishReason.DEADLINE
    assert end_of(events).best_effort
    with pytest.raises(DeadlineExceeded):
        await answer(engine, Edit("one two three", "", ((0, 3),)))


async def test_gaps_of_a_template_are_filled_in_order() -> None:
    """Each gap sees the prompt, all that was written and all that is still to come."""
    engine = ScriptedEngine(say("XX"), say("Y"))
    template = Constraint("template", "one {{gap:5}} two {{gap:3}}!")
    events = await answer(engine, "Fill it.", constraint=template)
    assert text_of(events) == "one XX two Y!"
    shown = [codec().tokenizer.decode(list(job.prompt_ids)) for job in engine.jobs]
    assert shown == ["Fill it.\none  two !", "Fill it.\none XX two !"]
    assert [job.max_new_tokens for job in engine.jobs] == [5, 3]
    assert end_of(events).usage.completion_tokens == 3


@given(st.text("ab \n\r\té", min_size=1, max_size=30), st.data())
@settings(max_examples=60, deadline=None)
async def test_everything_outside_the_spans_stays(text: str, data: st.DataObject) -> None:
    """Whatever the spans are, the text around them is byte for byte the caller's."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6)))
    spans = tuple(zip(cuts[::2], cuts[1::2], strict=False))
    events = await answer(ScriptedEngine(say("#")), Edit(text, "", spans))
    expected, position = "", 0
    for start, end in spans:
        expected, position = expected + text[position:start] + "#", end
    assert text_of(events) == expected + text[position:]


async def test_cut_input_is_flagged() -> None:
    """The end says where an infill's far ends were cut."""
    cut = await answer(ScriptedEngine(say("x")), Infill("a" * 999, "b"))
    whole = await answer(ScriptedEngine(say("x")), Infill("a", "b"))
    assert end_of(cut).usage.input_truncated
    assert not end_of(whole).usage.input_truncated


async def test_gathered_is_the_stream_joined() -> None:
    """A unary answer is the deltas of the stream, joined."""
    plans = planner()
    plan = plans.plan(request(Prompt("hi")), LIMITS)
    answering = Answering(ScriptedEngine(say("abcdef", pieces=3)), plans)
    text, last, finished = await gathered(answering.events(plan, LIMITS))
    assert (text, last.text) == ("abcdef", "ef")
    assert finished.finish_reason is FinishReason.STOP
