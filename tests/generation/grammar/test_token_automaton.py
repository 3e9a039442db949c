"""Tokens that may come: always within the language, always closed in time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from services.generation.grammar.bytes_automaton import bytes_automaton
from services.generation.grammar.language import LanguageTooLarge, Repeat, Text, either
from services.generation.grammar.path import Path
from services.generation.grammar.token_automaton import TokenTable, token_automaton
from services.generation.sampling import Draw
from tests.generation.grammar.automata import demo_table, row, tokens_of
from tests.generation.grammar.test_json_schema import CHAIN, PERSON, SHAPES

LETTERS = (b"", b"a", b"b", b"ab", b"ba", b"c")


def small(*options: str) -> TokenTable:
    """A vocabulary of letters that prefers the pair ab."""

    def encode(text: str) -> list[int]:
        ids: list[int] = []
        while text:
            piece = "ab" if text.startswith("ab") else text[0]
            ids.append(LETTERS.index(piece.encode()))
            text = text[len(piece) :]
        return ids

    return TokenTable(LETTERS, eos_id=0, encode=encode)


@pytest.mark.parametrize(
    ("options", "shortest"), [(("abab", "c"), 1), (("abab",), 2), (("aab", "bbb"), 2), (("",), 0)]
)
def test_shortest_answer(options: tuple[str, ...], shortest: int) -> None:
    """The least number of tokens is known before the first."""
    language = either(*map(Text, options))
    assert token_automaton(bytes_automaton(language), small()).shortest == shortest


def test_no_token_leads_where_the_answer_cannot_be_closed() -> None:
    """With fewer tokens left fewer may come."""
    language = either(Text("a"), Text("bcc"))
    automaton = token_automaton(bytes_automaton(language), small())
    assert automaton.options(0).within(3).tokens.tolist() == [1, 2]
    assert automaton.options(0).within(2).tokens.tolist() == [1]
    assert automaton.forced(0, 2) == 1
    assert automaton.follow(0, 2, 2) is None


def test_what_nothing_can_write_is_refused() -> None:
    """A text that the vocabulary has no tokens for."""
    with pytest.raises(ValueError, match="nothing"):
        token_automaton(bytes_automaton(Text("x")), small())


def test_too_many_states_are_refused() -> None:
    """Before they take up memory."""
    with pytest.raises(LanguageTooLarge):
        bytes_automaton(Repeat(Text("abcdefghij"), 5000, 5000))


def test_certain_text_is_written_as_the_tokenizer_does() -> None:
    """Where the text is certain only its own tokens may come, and they are placed unasked."""
    table = demo_table()
    schema = {"type": "object", "properties": {"customer": {"const": "Anna"}}}
    automaton = tokens_of(schema | {"required": ["customer"]})
    expected = [*table.encode('{"customer":"Anna"}'), table.eos_id]
    path = Path(automaton, 50)
    for token in expected:
        assert path.forced() == token
        path.take(token)
    assert path.whole


@pytest.mark.parametrize("schema", [PERSON, CHAIN, SHAPES], ids=["person", "chain", "shapes"])
@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_any_logits_give_a_document_within_any_budget(
    schema: dict[str, object], temperature: float
) -> None:
    """Random logits, some no numbers: the answer is whole even at the least budget."""
    automaton, table = tokens_of(schema), demo_table()
    rng = np.random.default_rng(1)
    for spare in (0, 1, 3, 30, 100) * 4:
        path = Path(automaton, automaton.shortest + spare)
        text = b""
        while path.left and not (path.whole and text and path.forced() == table.eos_id):
            draw = Draw(temperature, 0.9, 50, rng.random()) if temperature else None
            token, confidence = path.choose(row(rng, len(table.pieces)), draw)
            assert 0 <= confidence <= 1
            path.take(token)
            if token == table.eos_id:
                break
            text += table.pieces[token]
        assert path.whole
        json.loads(text)


def test_closing_is_the_shortest_way() -> None:
    """From wherever the answer is, the tokens that are missing."""
    table = demo_table()
    path = Path(tokens_of(PERSON), 60)
    for token in table.encode('{"name":"An'):
        path.take(token)
    assert b"".join(table.pieces[token] for token in path.shortest()) == b'"}'


def test_choice_is_by_logits_among_those_that_may_come() -> None:
    """The likeliest permitted token, with its share among the permitted."""
    automaton = token_automaton(bytes_automaton(either(Text("a"), Text("b"))), small())
    logits = np.array([9, 1, 2, 9, 9, 9], dtype=np.float32)
    token, confidence = Path(automaton, 5).choose(logits, None)
    assert token == 2
    assert confidence == pytest.approx(1 / (1 + np.exp(-1)))
    lucky = Draw(temperature=1.0, top_p=1.0, top_k=0, uniform=0.99)
    assert Path(automaton, 5).choose(logits, lucky)[0] == 1
