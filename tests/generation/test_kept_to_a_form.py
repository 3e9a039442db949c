"""Answers of both paradigms that are kept to a form: whole whatever the model.

The models are random, so the form owes nothing to them.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from services.ar_worker.sequence import NextToken
from services.diffusion_worker.family import BlockDiffusion
from services.generation.grammar.compiler import FormCompiler
from services.generation.grammar.token_automaton import TokenAutomaton
from services.generation.sequence import Family
from services.generation.slot_model import SlotModel
from services.generation.types import Constraint, FinishReason, Job
from services.generation.vocabulary import Vocabulary
from tests.generation.decoding import Answer, decode, step
from tests.generation.grammar.test_json_schema import CHAIN, PERSON, SHAPES
from tests.generation.tiny import EOS, MASK, PLAN, VOCABULARY_SIZE, decoder, job, prompt

_CHARACTERS = (string.ascii_letters + string.digits + '{}[]":,.-+_\\ ()/=<>;!?@#%&*|')[
    : VOCABULARY_SIZE - 4
]
LETTERS = Vocabulary(
    pieces=(b"", b"", b"", b"", *(character.encode() for character in _CHARACTERS)),
    eos_id=EOS,
    mask_id=MASK,
)
FORMS = FormCompiler(LETTERS, lambda text: [4 + _CHARACTERS.index(c) for c in text])
FAMILIES: dict[str, Callable[[], Family]] = {
    "shifted": lambda: BlockDiffusion(LETTERS, logit_shift=True, prefill_chunk=16),
    "unshifted": lambda: BlockDiffusion(LETTERS, logit_shift=False, prefill_chunk=16),
    "autoregressive": lambda: NextToken(LETTERS, prefill_chunk=16),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "person": PERSON,
    "chain": CHAIN,
    "shapes": SHAPES,
    "constant": {"const": [1, "a"]},
}


@pytest.fixture(scope="module")
def model() -> SlotModel:
    return SlotModel(decoder(), slots=16, max_context=256)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]()


def automaton_of(schema: dict[str, Any]) -> TokenAutomaton:
    return FORMS.compile(Constraint("json_schema", json.dumps(schema))).automaton


def kept(schema: dict[str, Any], spare: int = 40, number: int = 0, **changes: Any) -> Job:
    """A job for a document of the schema with some tokens more than the shortest takes."""
    automaton = automaton_of(schema)
    budget = max(1, automaton.shortest + spare)
    return job(prompt(5 + 7 * number, number), budget, automaton=automaton, **changes)


def text_of(answer: Answer) -> str:
    return b"".join(map(LETTERS.piece, answer.tokens)).decode()


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_every_answer_is_a_document(
    model: SlotModel, family: Family, schema: dict[str, Any], temperature: float
) -> None:
    """At the least budget and at ample ones, at once in one batch."""
    jobs = [
        kept(schema, spare, number, seed=number, temperature=temperature)
        for number, spare in enumerate((0, 1, 2, 5, 17, 60, 100))
    ]
    for asked, answer in zip(jobs, decode(model, family, jobs), strict=True):
        jsonschema.validate(json.loads(text_of(answer)), schema)
        assert answer.finish is FinishReason.STOP
        assert len(answer.tokens) <= asked.max_new_tokens


@pytest.mark.parametrize("temperature", [0.0, 1.2])
def test_the_same_alone_and_in_company(
    model: SlotModel, family: Family, temperature: float
) -> None:
    """Batch mates with other forms, or none, change nothing."""
    jobs = [
        *(
            kept(schema, 30, n, temperature=temperature)
            for n, schema in enumerate(SCHEMAS.values())
        ),
        job(prompt(9), 20),
    ]
    together = decode(model, family, jobs)
    for asked, answer in zip(jobs, together, strict=True):
        assert decode(model, family, [asked])[0].tokens == answer.tokens


@pytest.mark.parametrize("max_steps", [1, 3])
def test_steps_a_block_are_kept_to(model: SlotModel, max_steps: int) -> None:
    """With few steps a block the document is still one; what was forced is counted."""
    plan = replace(PLAN, max_steps=max_steps, confidence_threshold=1.0)
    answer = decode(model, FAMILIES["shifted"](), [kept(PERSON, 60, denoising=plan)])[0]
    jsonschema.validate(json.loads(text_of(answer)), PERSON)
    blocks = len(set(answer.blocks))
    assert answer.figures.denoise_steps <= max_steps * blocks
    assert answer.figures.forced_commits > 0


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_fixed_number_of_steps_gives_a_document(
    model: SlotModel, schema: dict[str, Any], temperature: float
) -> None:
    """static_quota settles its share in each step, whatever the model says, and none is forced."""
    plan = replace(PLAN, strategy="static_quota", max_steps=2)
    asked = kept(schema, 60, denoising=plan, temperature=temperature)
    answer = decode(model, FAMILIES["unshifted"](), [asked])[0]
    jsonschema.validate(json.loads(text_of(answer)), schema)
    assert answer.figures.denoise_steps <= 2 * answer.figures.blocks
    assert answer.figures.forced_commits == 0


def test_what_is_certain_costs_no_forward(model: SlotModel, family: Family) -> None:
    """A document without any choice is asked for in one forward, behind its prefill."""
    schema = {"const": {"name": "a long and certain text", "more": list(range(9))}}
    answer = decode(model, family, [kept(schema)])[0]
    assert json.loads(text_of(answer)) == schema["const"]
    assert answer.figures.generating_forwards == 1


def test_an_answer_that_is_cut_is_closed(model: SlotModel, family: Family) -> None:
    """Out of time after a forward or two, the answer ends by the shortest way."""
    for forwards in (1, 2, 3):
        sequence = family.open(kept(PERSON, 100))
        pieces: list[int] = []
        for _ in range(forwards):
            progress = step(model, sequence)
            assert progress.finish is None
            pieces += [token for piece in progress.pieces for token in piece.tokens]
        pieces += [token for piece in sequence.cut().pieces for token in piece.tokens]
        jsonschema.validate(json.loads(b"".join(map(LETTERS.piece, pieces))), PERSON)


def test_a_document_ends_in_the_forwards_there_are(model: SlotModel) -> None:
    """Told that time is short, diffusion settles whole blocks of the document at once."""
    sequence = FAMILIES["shifted"]().open(kept(PERSON, 20))
    tokens: list[int] = []
    for left in range(6, 0, -1):
        sequence.forwards_left = left
        progress = step(model, sequence)
        tokens += [token for piece in progress.pieces for token in piece.tokens]
        if progress.finish is not None:
            break
    assert progress.finish is FinishReason.STOP
    jsonschema.validate(json.loads(b"".join(map(LETTERS.piece, tokens))), PERSON)


def test_nothing_is_made_up_before_a_forward(family: Family) -> None:
    """Out of time before the first forward there is no answer."""
    assert family.open(kept(PERSON)).cut().pieces == ()


@pytest.mark.parametrize(
    ("constraint", "whole"),
    [
        (Constraint("choice", options=("yes", "no", "yes and no")), {"yes", "no", "yes and no"}),
        (Constraint("regex", "(?:ab|c){2}"), {"abab", "abc", "cab", "cc"}),
    ],
    ids=["choice", "regex"],
)
def test_choices_and_patterns(
    model: SlotModel, family: Family, constraint: Constraint, whole: set[str]
) -> None:
    """The answer is one of the texts, and other checks agree."""
    form = FORMS.compile(constraint)
    jobs = [
        job(prompt(4 + n, n), 20, seed=n, temperature=2.0, automaton=form.automaton)
        for n in range(12)
    ]
    texts = {text_of(answer) for answer in decode(model, family, jobs)}
    assert texts <= whole
    assert len(texts) > 1
    assert all(map(form.check, whole))
    assert not form.check("nothing of the kind")
