"""Automata under test: what they accept, what they may write, and vocabularies for them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from services.generation.checkpoint import read_checkpoint
from services.generation.grammar.bytes_automaton import DEAD, BytesAutomaton, bytes_automaton
from services.generation.grammar.json_schema import schema_language
from services.generation.grammar.language import Language
from services.generation.grammar.token_automaton import TokenAutomaton, TokenTable, token_automaton
from services.generation.schema import read_schema

STORE = Path("deploy/models/store/demo-diffusion/v1")


def accepts(automaton: BytesAutomaton, text: str) -> bool:
    """Whether the text is in the language."""
    state = 0
    for byte in text.encode():
        state = int(automaton.table[state, byte])
        if state == DEAD:
            return False
    return bool(automaton.accepting[state])


def automaton_of(language: Language | None) -> BytesAutomaton:
    """The automaton of a language that is not empty."""
    assert language is not None
    return bytes_automaton(language)


def schema_automaton(schema: dict[str, Any]) -> BytesAutomaton:
    """The documents of a schema."""
    return bytes_automaton(schema_language(read_schema(json.dumps(schema))).language)


@cache
def demo_table() -> TokenTable:
    """The demo models' tokens."""
    checkpoint = read_checkpoint(STORE)
    vocabulary = checkpoint.vocabulary
    return TokenTable(vocabulary.pieces, vocabulary.eos_id, checkpoint.codec.encode)


def tokens_of(schema: dict[str, Any]) -> TokenAutomaton:
    """A schema over the demo models' tokens."""
    return token_automaton(schema_automaton(schema), demo_table())


def drawn(automaton: TokenAutomaton, table: TokenTable, rng: Random, budget: int) -> bytes:
    """A text of at most ``budget`` tokens by random choices."""
    state, left, text = 0, budget, b""
    while left and state != automaton.end:
        options = automaton.options(state).within(left)
        index = rng.randrange(len(options.tokens))
        token, state, left = int(options.tokens[index]), int(options.states[index]), left - 1
        text += b"" if token == table.eos_id else table.pieces[token]
    assert automaton.is_whole(state)
    return text


def row(rng: np.random.Generator, size: int) -> Any:
    """Logits with a few numbers that are none."""
    logits = rng.normal(0, 4, size).astype(np.float32)
    logits[rng.integers(0, size, 5)] = (np.nan, np.inf, -np.inf, np.nan, 0)
    return logits
