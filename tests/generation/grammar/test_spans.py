"""Spans between kept texts: whatever fills them, the whole has its form."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from services.generation.grammar.bytes_automaton import bytes_automaton
from services.generation.grammar.path import Path
from services.generation.grammar.pattern import parse_pattern
from services.generation.grammar.spans import span_forms
from tests.generation.grammar.automata import (
    accepts,
    demo_table,
    drawn,
    row,
    schema_automaton,
    tokens_of,
)
from tests.generation.grammar.test_json_schema import CHAIN, PERSON, SHAPES


@pytest.mark.parametrize("schema", [PERSON, CHAIN, SHAPES], ids=["person", "chain", "shapes"])
def test_random_fillings_of_random_spans_are_documents(schema: dict[str, object]) -> None:
    """A document with holes anywhere is one again, by any logits, within the least budget."""
    form, table, random = schema_automaton(schema), demo_table(), Random(2)
    numbers = np.random.default_rng(2)
    for _ in range(6):
        text = drawn(tokens_of(schema), table, random, 40).decode()
        cuts = sorted(random.sample(range(len(text) + 1), 4))
        kept = [text[: cuts[0]], text[cuts[1] : cuts[2]], text[cuts[3] :]]
        most = next(n for n in range(1, 64) if span_forms(form, table, kept, n))
        for tokens in (most, most + 3):
            spans = span_forms(form, table, kept, tokens)
            assert spans is not None
            written = kept[0]
            for index, behind in enumerate(kept[1:]):
                path = Path(spans.at(index, written), tokens)
                filling = b""
                while path.left and path.forced() != table.eos_id:
                    token, _ = path.choose(row(numbers, len(table.pieces)), None)
                    path.take(token)
                    if token == table.eos_id:
                        break
                    filling += table.pieces[token]
                written += filling.decode() + behind
            assert accepts(form, written)


@pytest.mark.parametrize(
    ("pattern", "kept", "tokens", "possible"),
    [
        ("a+b+", ["a", "b"], 1, True),
        ("a+b+", ["b", "b"], 9, False),
        ("a+b+", ["", "c"], 9, False),
        ("(ab)*", ["a", "a", ""], 1, True),
        ("a{6}", ["a", "a", "a"], 0, False),
        ("x{9}", ["x", "x"], 64, True),
    ],
)
def test_what_can_be_filled_is_known_before(
    pattern: str, kept: list[str], tokens: int, *, possible: bool
) -> None:
    """From the texts that are kept and the tokens that there are for each span."""
    form = bytes_automaton(parse_pattern(pattern).whole())
    assert (span_forms(form, demo_table(), kept, tokens) is not None) is possible
