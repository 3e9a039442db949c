"""Schemas from a generator, kept to by random models that spell every text byte by byte."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from services.ar_worker.sequence import NextToken
from services.chassis.errors import InvalidRequest
from services.diffusion_worker.family import BlockDiffusion
from services.generation.grammar.compiler import Form, FormCompiler
from services.generation.sequence import Family
from services.generation.slot_model import SlotModel
from services.generation.types import Constraint, Job
from services.generation.vocabulary import Vocabulary
from tests.generation.decoding import decode
from tests.generation.grammar.generated import UNSUPPORTED, Schema, generated, validator_of
from tests.generation.tiny import EOS, MASK, decoder, job, prompt

BYTES = Vocabulary(
    pieces=(b"", b"", b"", b"", *(bytes([byte]) for byte in range(256))), eos_id=EOS, mask_id=MASK
)
FORMS = FormCompiler(BYTES, lambda text: [4 + byte for byte in text.encode()])
FAMILIES: dict[str, Callable[[], Family]] = {
    "diffusion": lambda: BlockDiffusion(BYTES, logit_shift=True),
    "autoregressive": lambda: NextToken(BYTES),
}


def form_of(schema: Schema) -> Form:
    return FORMS.compile(Constraint("json_schema", json.dumps(schema)))


def kept(form: Form, number: int) -> Job:
    """A job with some tokens more than the shortest document takes."""
    automaton = form.automaton
    return job(prompt(9, number), automaton.shortest + 40, seed=number, automaton=automaton)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_generated_schemas_are_kept_to(family: Callable[[], Family]) -> None:
    """Of a dozen schemas none is refused, and the answers are documents of theirs."""
    schemas = [schema for schema, _ in generated(12, seed=5)]
    jobs = [kept(form_of(schema), number) for number, schema in enumerate(schemas)]
    model = SlotModel(decoder(vocab_size=len(BYTES.pieces)), slots=12, max_context=1024)
    for schema, answer in zip(schemas, decode(model, family(), jobs), strict=True):
        text = b"".join(map(BYTES.piece, answer.tokens)).decode()
        validator_of(schema).validate(json.loads(text))


def test_what_is_planted_is_refused_by_name() -> None:
    """Each keyword that is not supported, anywhere in a schema that is fine otherwise."""
    schemas = list(generated(40, seed=6, unsupported=1.0))
    assert {keyword for _, keyword in schemas} == set(UNSUPPORTED)
    for schema, keyword in schemas:
        with pytest.raises(InvalidRequest) as refused:
            form_of(schema)
        assert f"/properties/extra/{keyword}: " in str(refused.value)
