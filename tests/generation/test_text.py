"""From tokens to text: whole characters, stop texts, reasoning kept apart."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from services.generation.text import StopTexts, Transcript
from services.generation.vocabulary import Vocabulary, token_bytes

OPEN, CLOSE, EOS, FIRST_BYTE = 0, 1, 2, 3
BYTES = Vocabulary(
    pieces=(b"", b"", b"", *(bytes([byte]) for byte in range(256))),
    eos_id=EOS,
    think_open_id=OPEN,
    think_close_id=CLOSE,
)


def spell(text: str) -> list[int]:
    """One token a byte."""
    return [FIRST_BYTE + byte for byte in text.encode()]


def chunked(tokens: list[int], cuts: list[int]) -> list[list[int]]:
    places = sorted({0, len(tokens), *(cut % (len(tokens) + 1) for cut in cuts)})
    return [tokens[start:end] for start, end in pairwise(places)]


def write(tokens: list[list[int]], stops: tuple[str, ...] = (), **options: bool) -> list[str]:
    """All texts that come out, the held one last."""
    transcript = Transcript(BYTES, stops, **options)
    return [*(transcript.push(chunk) for chunk in tokens), transcript.finish()]


@given(text=st.text(), cuts=st.lists(st.integers(min_value=0)))
def test_chunks_join_to_the_text(text: str, cuts: list[int]) -> None:
    """However tokens fall into chunks, the texts join to the whole."""
    assert "".join(write(chunked(spell(text), cuts))) == text


def test_no_chunk_holds_half_a_character() -> None:
    """A character of several tokens comes whole with its last one."""
    text = "떡볶이 👨‍👩‍👧 𠮷 é"
    out = write([[token] for token in spell(text)])
    assert "".join(out) == text
    assert "\ufffd" not in "".join(out)


def test_a_character_cut_off_at_the_end_is_dropped() -> None:
    """An answer that ends inside a character ends before it."""
    assert "".join(write([spell("ab👧")[:-1]])) == "ab"


@given(
    text=st.text(),
    sent=st.integers(min_value=0),
    decided=st.integers(min_value=0),
    stops=st.lists(st.text(min_size=1, max_size=3), max_size=2).map(tuple),
)
def test_a_preview_is_what_would_be_sent(
    text: str, sent: int, decided: int, stops: tuple[str, ...]
) -> None:
    """Up to the first undecided place, with stop texts held back, and without any trace."""
    tokens = spell(text)
    sent %= len(tokens) + 1
    decided = sent + decided % (len(tokens) - sent + 1)
    transcript, twin = Transcript(BYTES, stops), Transcript(BYTES, stops)
    transcript.push(tokens[:sent]), twin.push(tokens[:sent])
    preview = transcript.preview([*tokens[sent:decided], None, *tokens[decided:]])
    assert preview == twin.push(tokens[sent:decided])
    assert transcript.push(tokens[sent:]) == preview + twin.push(tokens[decided:])
    assert transcript.finish() == twin.finish()


@given(text=st.text(), holes=st.lists(st.booleans()))
def test_a_preview_joins_nothing_across_undecided_places(text: str, holes: list[bool]) -> None:
    """Where nothing can hide, what is decided shows, in characters of the text alone."""
    tokens = [
        None if hole else token
        for token, hole in zip(spell(text), holes + [False] * 4 * len(text), strict=False)
    ]
    following = iter(text)
    preview = Transcript(replace(BYTES, think_open_id=None)).preview(tokens)
    assert all(character in following for character in preview)
    assert None in tokens or preview == text


def test_bytes_that_are_no_text_are_dropped() -> None:
    """Invalid UTF-8 leaves no mark, and what follows is read."""
    assert "".join(write([[FIRST_BYTE + 0xFF, FIRST_BYTE + 0xE2, *spell("ok")]])) == "ok"


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("A lazy heron waited", ("eron wai",), "A lazy h"),
        ("A lazy heron waited", ("her", "heron w"), "A lazy "),
        ("A lazy heron waxed", ("eron wai",), "A lazy heron waxed"),
        ("A lazy eron wa", ("eron wai",), "A lazy eron wa"),
        ("红色的苹果", ("的苹",), "红色"),
        ("aaab", ("aab",), "a"),
        ("xabcd", ("bc", "abcd"), "xa"),
        ("xabc", ("bc", "abc"), "x"),
    ],
)
def test_stop_texts(text: str, stops: tuple[str, ...], expected: str) -> None:
    """Text ends before the stop text that is complete first; near misses are let go."""
    assert "".join(write([[token] for token in spell(text)], stops)) == expected
    assert "".join(write([spell(text)], stops)) == expected


@given(
    text=st.text(alphabet="abc"),
    stops=st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=4),
    cuts=st.lists(st.integers(min_value=0)),
)
def test_stops_do_not_depend_on_chunks(text: str, stops: list[str], cuts: list[int]) -> None:
    """The answer is the text before the first complete stop text, whatever the chunks."""
    ends = [
        (end, -len(stop))
        for end in range(len(text) + 1)
        for stop in stops
        if text[:end].endswith(stop)
    ]
    expected = text if not ends else text[: min(ends)[0] + min(ends)[1]]
    assert "".join(write(chunked(spell(text), cuts), tuple(stops))) == expected


@given(text=st.text(alphabet="ab"), stop=st.text(alphabet="ab", min_size=1, max_size=5))
def test_text_is_held_no_longer_than_needed(text: str, stop: str) -> None:
    """What is held back is always the beginning of a stop text."""
    filter_ = StopTexts((stop,))
    out = "".join(filter_.push(character) for character in text)
    if not filter_.met:
        assert stop.startswith(text[len(out) :])


def test_tokens_behind_a_stop_text_do_not_count() -> None:
    """Tokens are counted up to the one that completes the stop text."""
    transcript = Transcript(BYTES, ("cd",))
    transcript.push(spell("abcdef"))
    assert transcript.stopped
    assert transcript.tokens == 4


def test_reasoning_never_reaches_the_text() -> None:
    """Text between the marks is kept apart and counted, marks included."""
    transcript = Transcript(BYTES)
    tokens = [*spell("a"), OPEN, *spell("why"), CLOSE, *spell("b")]
    assert "".join(transcript.push([token]) for token in tokens) == "ab"
    assert (transcript.thinking, transcript.thinking_tokens, transcript.tokens) == ("why", 5, 7)


def test_reasoning_can_be_open_from_the_start() -> None:
    """Where the prompt opened the reasoning, text begins behind its closing mark."""
    transcript = Transcript(BYTES, thinking=True)
    assert transcript.push([*spell("why"), CLOSE, *spell("b")]) == "b"
    assert transcript.thinking == "why"


def test_stop_texts_do_not_end_the_reasoning() -> None:
    """A stop text is looked for in the answer alone."""
    transcript = Transcript(BYTES, ("w",), thinking=True)
    assert transcript.push([*spell("why"), CLOSE, *spell("bw")]) == "b"
    assert transcript.stopped


def test_stray_marks_and_special_tokens_leave_no_trace() -> None:
    """A closing mark without an opening one is dropped."""
    assert "".join(write([[*spell("a"), CLOSE, EOS, *spell("b"), 9999]])) == "ab"


@given(text=st.text())
def test_byte_level_pieces_spell_the_text(text: str) -> None:
    """The pieces of a byte-level vocabulary join to exactly what was encoded."""
    pieces = token_bytes(BYTE_LEVEL)
    ids = BYTE_LEVEL.encode(text, add_special_tokens=False).ids
    assert b"".join(pieces[token] for token in ids) == text.encode()


def test_special_tokens_have_no_piece() -> None:
    """A special token is nothing as text, an ordinary added one is its text."""
    pieces = token_bytes(BYTE_LEVEL)
    assert pieces[BYTE_LEVEL.get_vocab()["<end>"]] == b""
    assert pieces[BYTE_LEVEL.get_vocab()["added"]] == b"added"


def test_sentence_piece_vocabularies_are_read() -> None:
    """The space mark and single bytes are undone."""
    vocab = {"<unk>": 0, "<0xE2>": 1, "\u2581the": 2, "re": 3}
    tokenizer = Tokenizer(models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    assert token_bytes(tokenizer)[1:] == (b"\xe2", b" the", b"re")


def test_unknown_vocabularies_are_refused() -> None:
    """A vocabulary whose spelling is not known is an error, not garbled text."""
    with pytest.raises(ValueError, match="not supported"):
        token_bytes(Tokenizer(models.WordPiece({"a": 0}, unk_token="a")))


def _byte_level_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the heron waited, the heron flew"], trainer)
    tokenizer.add_tokens(["added"])
    return tokenizer


BYTE_LEVEL = _byte_level_tokenizer()
