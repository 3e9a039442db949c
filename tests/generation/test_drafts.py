"""Drafts: the open block as it stands, without anything that may not be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from services.diffusion_worker.family import BlockDiffusion, MaskedDiffusion
from services.generation.run import Run
from services.generation.sampling import predict
from services.generation.sequence import Family
from services.generation.slot_model import SlotModel
from services.generation.text import Transcript
from services.generation.ticket import Ticket
from services.generation.types import Delta, Draft, Event, Finished, Job
from services.generation.vocabulary import Vocabulary
from tests.generation.tiny import MASK, PLAN, VOCABULARY, decoder, job, prompt

SILENT = replace(VOCABULARY, think_open_id=None, think_close_id=None)
"""The same tokens for a model that does not reason."""
FAMILIES: dict[str, Callable[[Vocabulary], Family]] = {
    "shifted": lambda vocabulary: BlockDiffusion(vocabulary, logit_shift=True),
    "unshifted": lambda vocabulary: BlockDiffusion(vocabulary, logit_shift=False),
    "whole_canvas": lambda vocabulary: MaskedDiffusion(vocabulary, logit_shift=False),
}
SURE = replace(PLAN, edit_threshold=1.0, confidence_threshold=0.9)
"""Decided is decided, a few places in each step."""


@pytest.fixture(scope="module")
def model() -> SlotModel:
    return SlotModel(decoder(), slots=1, max_context=256)


@pytest.fixture(params=FAMILIES)
def opens(request: pytest.FixtureRequest) -> Callable[[Vocabulary], Family]:
    return FAMILIES[request.param]


def events_of(model: SlotModel, family: Family, asked: Job, vocabulary: Vocabulary) -> list[Event]:
    """All events of a job, none of them left out for a reader that is late."""
    transcript = Transcript(vocabulary, asked.stop, thinking=asked.thinking)
    now = time.monotonic()
    run = Run(Ticket(asked, lambda _: None), 0, family.open(asked), transcript, now)
    events: list[Event] = []
    while not (events and isinstance(events[-1], Finished)):
        rows = run.sequence.rows()
        logits = model.forward([(0, rows)])
        events += run.advance(predict(logits, rows.all_draws(), [MASK], rows.all_spreads()), now)
    return events


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def seen(events: list[Event]) -> list[str]:
    """What a reader has before it at each draft: the text sent and the draft behind it."""
    return [
        text_of(events[:index]) + event.text
        for index, event in enumerate(events)
        if isinstance(event, Draft)
    ]


def drafted(number: int = 0, **changes: object) -> Job:
    fields: dict[str, object] = {"denoising": SURE, "drafts": True, **changes}
    return job(prompt(9 + number, number), 40, **fields)


@pytest.mark.parametrize("edit_threshold", [1.0, 0.3])
def test_drafts_change_nothing_else(
    model: SlotModel, opens: Callable[[Vocabulary], Family], edit_threshold: float
) -> None:
    """The text and the figures are those of the same call without drafts; none follows its twin."""
    plan = replace(SURE, edit_threshold=edit_threshold)
    for number in range(3):
        asked = drafted(number, denoising=plan)
        events = events_of(model, opens(SILENT), asked, SILENT)
        plain = events_of(model, opens(SILENT), replace(asked, drafts=False), SILENT)
        assert [event for event in events if isinstance(event, Delta)] == plain[:-1]
        assert events[-1].usage == plain[-1].usage  # type: ignore[union-attr]
        assert all(one != other for one, other in pairwise(events))
        assert len(seen(events)) > 1


def test_undecided_places_are_left_out(
    model: SlotModel, opens: Callable[[Vocabulary], Family]
) -> None:
    """Without edits all words of a draft stay, in their order, and others come between them."""
    endless, gaps = replace(SILENT, eos_id=-1), False
    for number in range(4):
        events = events_of(model, opens(endless), drafted(number), endless)
        whole = text_of(events)
        for text in seen(events):
            following = iter(whole.split())
            assert all(word in following for word in text.split())
            gaps |= not whole.startswith(text)
    assert gaps


@pytest.mark.parametrize("stops", [(), ("4 ", "7 5")])
@pytest.mark.parametrize("thinking", [False, True])
def test_what_may_be_hidden_is_not_shown(
    model: SlotModel,
    opens: Callable[[Vocabulary], Family],
    stops: tuple[str, ...],
    thinking: bool,
) -> None:
    """Where a stop text or reasoning may come, a draft is the beginning of the final text."""
    shown = False
    for number in range(8):
        asked = drafted(number, stop=stops, thinking=thinking, max_thinking_tokens=12)
        events = events_of(model, opens(VOCABULARY), asked, VOCABULARY)
        assert all(text_of(events).startswith(text) for text in seen(events))
        shown |= bool(seen(events))
    assert shown


def test_what_a_reader_holds_is_never_out_of_date(model: SlotModel) -> None:
    """After each step the latest event says how the open block stands, also after edits."""
    plan = replace(PLAN, edit_threshold=0.2)
    for number in range(6):
        asked = drafted(number, denoising=plan)
        sequence = FAMILIES["shifted"](SILENT).open(asked)
        transcript = Transcript(SILENT)
        run = Run(Ticket(asked, lambda _: None), 0, sequence, transcript, time.monotonic())
        held, events = "", list[Event]()
        while not (events and isinstance(events[-1], Finished)):
            rows = sequence.rows()
            logits = model.forward([(0, rows)])
            events = run.advance(predict(logits, rows.all_draws(), [MASK]), 0.0)
            for event in events:
                held = event.text if isinstance(event, Draft) else ""
            done = events and isinstance(events[-1], Finished)
            assert held == ("" if done else transcript.preview(sequence.sketch().tokens))
