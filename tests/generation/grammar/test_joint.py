"""Tokens chosen together: always permitted, and the likeliest string there is."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.generation.grammar import joint
from services.generation.grammar.bytes_automaton import bytes_automaton
from services.generation.grammar.joint import likeliest_tokens
from services.generation.grammar.path import Logits, Path
from services.generation.grammar.pattern import parse_pattern
from services.generation.grammar.token_automaton import TokenAutomaton, token_automaton
from tests.generation.grammar.automata import demo_table, row, tokens_of
from tests.generation.grammar.test_json_schema import CHAIN, PERSON, SHAPES
from tests.generation.grammar.test_token_automaton import LETTERS, small

EOS = 0
PATTERNS = ("a*", "(ab|ba)*c", "a?b?c?", "[abc]{2,4}", "(a|ab)(c|bc)", "abc")


def automaton_of(pattern: str) -> TokenAutomaton:
    return token_automaton(bytes_automaton(parse_pattern(pattern).whole()), small())


def permitted(automaton: TokenAutomaton, tokens: tuple[int, ...], left: int) -> bool:
    """Whether the tokens may come in that order, with end tokens alone behind the end."""
    state = 0
    for place, token in enumerate(tokens):
        if state == automaton.end:
            return set(tokens[place:]) == {EOS}
        reached = automaton.follow(state, token, left - place)
        if reached is None:
            return False
        state = reached
    return True


def worth(logits: Logits, tokens: tuple[int, ...]) -> float:
    """Log-probability of the tokens, each for itself."""
    wide = logits.astype(np.float64)
    normal = wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    return float(sum(normal[place, token] for place, token in enumerate(tokens)))


@given(
    pattern=st.sampled_from(PATTERNS),
    places=st.integers(1, 4),
    spare=st.integers(0, 4),
    seed=st.integers(0, 2**16),
)
@settings(deadline=None)
def test_it_is_the_likeliest_of_all_permitted_strings(
    pattern: str, places: int, spare: int, seed: int
) -> None:
    """The same as by trying every string."""
    automaton = automaton_of(pattern)
    left = max(automaton.shortest, places) + spare
    logits = np.random.default_rng(seed).normal(0, 2, (places, len(LETTERS))).astype(np.float32)
    strings = product(range(len(LETTERS)), repeat=places)
    possible = [tokens for tokens in strings if permitted(automaton, tokens, left)]
    found = tuple(likeliest_tokens(automaton, 0, left, logits, EOS))
    assert found in possible
    assert worth(logits, found) == pytest.approx(max(worth(logits, each) for each in possible))


@pytest.mark.parametrize("schema", [PERSON, CHAIN, SHAPES], ids=["person", "chain", "shapes"])
@pytest.mark.parametrize("edges", [1, 3000, 100_000])
def test_a_document_comes_of_any_logits(
    schema: dict[str, object], edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some no numbers, the budget the least, few ways followed: what comes is a document."""
    monkeypatch.setattr(joint, "MAX_EDGES", edges)
    automaton, table = tokens_of(schema), demo_table()
    rng = np.random.default_rng(1)
    for spare in (0, 1, 5, 40):
        path = Path(automaton, automaton.shortest + spare)
        tokens: list[int] = []
        while path.left and table.eos_id not in tokens:
            places = min(path.left, 16)
            rows = np.stack([row(rng, len(table.pieces)) for _ in range(places)])
            tokens += path.together(rows, table.eos_id)
            for token in tokens[len(path) :]:
                path.take(token)
                if token == table.eos_id:
                    break
        text = tokens[: tokens.index(table.eos_id)] if table.eos_id in tokens else tokens
        assert path.whole
        json.loads(b"".join(table.pieces[token] for token in text))


def test_together_is_better_than_one_by_one() -> None:
    """The likeliest first token is not taken where all that may follow it is unlikely."""
    automaton = automaton_of("aa|bc")
    logits = np.full((2, len(LETTERS)), -9.0, dtype=np.float32)
    logits[0, [1, 2]], logits[1, 5] = (1.0, 0.9), 5.0
    path = Path(automaton, 4)
    assert path.choose(logits[0], None)[0] == 1
    assert path.together(logits, EOS) == [2, 5]


def test_the_end_is_no_cheaper_than_going_on() -> None:
    """What is behind the end counts as well: a short answer has to be likely as a whole."""
    logits = np.full((3, len(LETTERS)), -9.0, dtype=np.float32)
    logits[0, [EOS, 1]] = (1.0, 0.9)
    logits[1:, 1] = 5.0
    assert Path(automaton_of("a*"), 9).together(logits, EOS) == [1, 1, 1]
