"""Prompts: templates, special tokens that no caller can write, infills cut at their far ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.chassis.errors import LimitExceeded, UnsupportedParameter
from services.generation.card import CheckpointError
from services.generation.codec import TextCodec
from services.generation.prompt import Encoded, PromptEncoder
from services.generation.types import Chat, Edit, Infill, Input, Prompt, Thinking, Turn
from tests.checkpoints import SPECIALS, tiny_tokenizer
from tests.generation.requests import card, codec

CODEC = codec()
ROOM = 200
UNSAID = Thinking()

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
nasty = st.lists(anything | st.sampled_from(SPECIALS), max_size=6).map("".join)


def encode(source: Input, room: int = ROOM, thinking: Thinking = UNSAID) -> Encoded:
    return PromptEncoder(card(), CODEC).encode(source, thinking, room)


def spelled(ids: tuple[int, ...]) -> str:
    """The prompt with its special tokens spelled out."""
    return str(CODEC.tokenizer.decode(list(ids), skip_special_tokens=False))


def control_tokens(ids: tuple[int, ...]) -> list[str]:
    """The special tokens of a prompt, in order."""
    names = {number: name for name, number in CODEC.control.items()}
    return [names[number] for number in ids if number in names]


@pytest.mark.parametrize(
    ("source", "written"),
    [
        (Prompt("hi"), "<|user|>hi<|assistant|>"),
        (
            Chat(
                (Turn("system", "be"), Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c"))
            ),
            "<|system|>be<|end|><|user|>a<|assistant|>b<|end|><|user|>c<|assistant|>",
        ),
        (Infill("a(", ")\r\n\t"), "<|fim_prefix|>a(<|fim_suffix|>)\r\n\t<|fim_middle|>"),
        (Infill("", "b"), "<|fim_prefix|><|fim_suffix|>b<|fim_middle|>"),
        (Edit("  old", "do {text}"), "<|user|>do {text}\n  old<|assistant|>"),
        (Prompt("red\0blue"), "<|user|>red\0blue<|assistant|>"),
    ],
)
def test_template(source: Input, written: str) -> None:
    """Each input is written in its template, the caller's text byte for byte."""
    assert spelled(encode(source).ids) == written


@pytest.mark.parametrize("special", SPECIALS)
def test_special_token_text_stays_text(special: str) -> None:
    """Text that spells a special token is encoded as its characters, in every input."""
    ids = encode(Prompt(f"a {special} b")).ids
    assert control_tokens(ids) == ["<|user|>", "<|assistant|>"]
    assert spelled(ids) == f"<|user|>a {special} b<|assistant|>"
    infill = encode(Infill(special, f"# {special}"))
    assert control_tokens(infill.ids) == ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]


@given(nasty, nasty)
@settings(max_examples=100, deadline=None)
def test_no_text_makes_a_control_token(first: str, second: str) -> None:
    """Whatever is written, the control tokens of a prompt are those of its template."""
    assert control_tokens(encode(Infill(first, second), 4000).ids) == [
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
    ]
    turns = (Turn("user", first), Turn("assistant", second), Turn("user", first))
    assert control_tokens(encode(Chat(turns), 4000).ids) == [
        "<|user|>",
        "<|assistant|>",
        "<|end|>",
        "<|user|>",
        "<|assistant|>",
    ]


def test_control_token_must_be_in_the_tokenizer() -> None:
    """A card that names a token which the tokenizer lacks is refused."""
    with pytest.raises(CheckpointError, match="no added token <none>"):
        TextCodec(tiny_tokenizer(), ["<none>"])


@pytest.mark.parametrize(
    ("enabled", "mark", "inside"),
    [(True, "<think>", True), (False, "<think></think>", False), (None, "", False)],
)
def test_reasoning_is_opened_closed_or_left(enabled: bool | None, mark: str, inside: bool) -> None:
    """Thinking on opens the reasoning, off closes it at once, unset leaves it to the model."""
    encoded = encode(Prompt("hi"), thinking=Thinking(enabled=enabled))
    assert spelled(encoded.ids) == f"<|user|>hi<|assistant|>{mark}"
    assert encoded.thinking is inside


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.integers(12, 120),
)
@settings(max_examples=100, deadline=None)
def test_only_far_ends_of_an_infill_are_cut(before: str, after: str, room: int) -> None:
    """What is kept of an infill touches the gap, fits, and is whole characters."""
    encoded = encode(Infill(before + ".", after), room)
    assert len(encoded.ids) <= room
    written = spelled(encoded.ids)
    kept_before = written.partition("<|fim_suffix|>")[0].removeprefix("<|fim_prefix|>")
    kept_after = written.rpartition("<|fim_suffix|>")[2].removesuffix("<|fim_middle|>")
    if "<|" not in before + after:
        assert (before + ".").endswith(kept_before)
        assert after.startswith(kept_after)
        assert encoded.truncated == ((kept_before, kept_after) != (before + ".", after))


def test_long_prefix_keeps_the_text_at_the_cursor() -> None:
    """Of 100 KB before the cursor the nearest text stays, and the cut is flagged."""
    encoded = encode(Infill("x = 1\n" * 17_000 + "MARKER(", ")\nprint(1)"))
    assert encoded.truncated
    assert "MARKER(<|fim_suffix|>)\nprint(1)<|fim_middle|>" in spelled(encoded.ids)


def test_short_infill_is_not_cut() -> None:
    """An infill that fits is whole and not flagged."""
    assert not encode(Infill("def area(r):\n    ", "print(area(3))")).truncated


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (Prompt("x" * 199), "prompt"),
        (Prompt("x" * 1_000_000), "prompt"),
        (Chat((Turn("user", "x" * 300),)), "chat"),
        (Edit("x" * 300, "do"), "edit"),
    ],
)
def test_oversized_input_is_refused(source: Input, field: str) -> None:
    """Anything but an infill that does not fit is refused by name, however long it is."""
    with pytest.raises(LimitExceeded) as caught:
        encode(source)
    assert caught.value.violations[0].field == field


def test_infill_without_room_is_refused() -> None:
    """Where not even one token beside the gap fits, the infill is refused."""
    with pytest.raises(LimitExceeded):
        encode(Infill("abc", "def"), 3)


def test_missing_template_is_named() -> None:
    """A model without an infill template refuses infills by the field's name."""
    templates = card().prompt.model_copy(update={"infill": None})
    bare = card().model_copy(update={"prompt": templates})
    with pytest.raises(UnsupportedParameter) as caught:
        PromptEncoder(bare, CODEC).encode(Infill("a", "b"), Thinking(), ROOM)
    assert caught.value.violations[0].field == "infill"


def around(prefix: str, suffix: str, room: int = ROOM) -> Encoded:
    """A gap as a model is asked that sees both sides of it."""
    described = card(family="masked_diffusion")
    return PromptEncoder(described, CODEC).encode(Infill(prefix, suffix), UNSAID, room)


def test_a_gap_lies_between_its_sides_where_both_are_seen() -> None:
    """No template is written: what is before the gap goes before, what is behind goes behind."""
    encoded = around("a(", ")\n")
    assert (spelled(encoded.ids), spelled(encoded.suffix)) == ("a(", ")\n")
    assert spelled(around("", "b").ids) == "<|eos|>"
    assert around("b", "").suffix == ()


def test_a_gap_between_long_sides_keeps_what_is_near() -> None:
    """Both sides together fit the room, cut at their far ends."""
    encoded = around("p" * 300 + "<", ">" + "s" * 300, room=40)
    assert len(encoded) <= 40
    assert encoded.truncated
    assert spelled(encoded.ids).endswith("p<")
    assert spelled(encoded.suffix).startswith(">s")
    with pytest.raises(LimitExceeded, match="infill"):
        around("p" * 9, "s" * 9, room=1)
