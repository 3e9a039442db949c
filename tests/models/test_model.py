"""The training forward against transformers, and its block mask against a dense one."""

from itertools import islice

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from deploy.models.attention import BlockMask
from deploy.models.model import ROPE_THETA, LanguageModel, Shape, fresh_model

SHAPE = Shape(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    intermediate_size=48,
)


@pytest.fixture
def model() -> LanguageModel:
    return fresh_model(SHAPE, seed=1).eval()


def _twin(model: LanguageModel) -> Qwen3ForCausalLM:
    rope = {"rope_type": "default", "rope_theta": ROPE_THETA}
    config = Qwen3Config(**SHAPE.as_config(), rope_parameters=rope, tie_word_embeddings=True)  # type: ignore[arg-type]
    twin: Qwen3ForCausalLM = Qwen3ForCausalLM(config).train(False)
    twin.load_state_dict(model.state_dict(), strict=False)
    twin.tie_weights()
    return twin


@torch.inference_mode()
def test_forward_equals_transformers_under_any_mask(model: LanguageModel) -> None:
    """The same weights under the same 4-D mask give the same logits."""
    torch.manual_seed(2)
    ids = torch.randint(0, 64, (2, 24))
    mask = (torch.rand(2, 1, 24, 24) > 0.4) | torch.eye(24, dtype=torch.bool)
    hidden, _ = model(ids, torch.arange(24).expand(2, -1), mask)
    additive = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    expected = _twin(model)(input_ids=ids, attention_mask=additive).logits
    torch.testing.assert_close(model.logits(hidden), expected, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_cached_forward_equals_whole_forward(model: LanguageModel) -> None:
    """Keys and values kept from a first part give the second part's states unchanged."""
    ids, at = torch.arange(20)[None], torch.arange(20)[None]
    mask = torch.ones(20, 20, dtype=torch.bool).tril()[None, None]
    whole, _ = model(ids, at, mask)
    _, cache = model(ids[:, :12], at[:, :12], mask[:, :, :12, :12])
    rest, _ = model(ids[:, 12:], at[:, 12:], mask[:, :, 12:], cache)
    torch.testing.assert_close(rest, whole[:, 12:], rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_block_mask_equals_its_dense_form(model: LanguageModel) -> None:
    """The split attention of training rows is one large mask, computed cheaper."""
    torch.manual_seed(3)
    clean, cross = torch.ones(16, 16, dtype=torch.bool).tril(), torch.rand(8, 16) > 0.5
    mask = BlockMask(clean[None, None], cross[None, None], block=4)
    ids, at = torch.randint(0, 64, (1, 24)), torch.arange(24)[None]
    split, _ = model(ids, at, mask)
    dense, _ = model(ids, at, mask.dense())
    torch.testing.assert_close(split, dense, rtol=1e-4, atol=1e-5)


def test_weights_carry_the_names_of_transformers(model: LanguageModel) -> None:
    """A checkpoint needs no conversion."""
    names = {name for name, _ in _twin(model).named_parameters()}
    assert {name for name, _ in islice(model.named_parameters(), None)} == names
