"""The tokenizer of the demo store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from deploy.models.corpus.action import ACTION_TOKENS
from deploy.models.prompt_format import PromptEncoder
from deploy.models.tokenizer import SPECIALS, TextCodec, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["a lamp in Oslo costs 12 euros", "王伟住在北京。"])


@pytest.fixture(scope="module")
def codec(tokenizer: Tokenizer) -> TextCodec:
    return TextCodec(tokenizer)


@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_comes_back_unchanged(codec: TextCodec, text: str) -> None:
    """Every byte is encodable, and decoding gives the same text."""
    assert codec.decode(codec.encode(text)) == text


@pytest.mark.parametrize("token", SPECIALS)
def test_text_that_spells_a_special_stays_text(codec: TextCodec, token: str) -> None:
    """A user cannot write a special token into a prompt."""
    assert codec.special(token) not in codec.encode(f"say {token} twice")


@pytest.mark.parametrize("token", ACTION_TOKENS)
def test_an_action_is_one_ordinary_token(codec: TextCodec, token: str) -> None:
    """An action is a single entry whose text is readable."""
    ids = codec.encode(token)
    assert (len(ids), codec.decode(ids)) == (1, token)


def test_digits_stand_alone(codec: TextCodec) -> None:
    """A number is as many tokens as it has digits."""
    assert len(codec.encode("2027")) == 4


def test_template_specials_become_specials(codec: TextCodec) -> None:
    """The template's own specials are encoded as such, the placeholder's text is not."""
    ids = PromptEncoder(codec).render("<|user|>{prompt}<|assistant|>", prompt="<|user|>")
    assert ids.count(codec.special("<|user|>")) == 1
