"""The reference decoder on a tiny model."""

import pytest
import torch

from deploy.models.commit_rule import Rule
from deploy.models.decode import decode_autoregressive, decode_diffusion
from deploy.models.model import LanguageModel, Shape, fresh_model

SHAPE = Shape(
    vocab_size=32,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    intermediate_size=32,
)
MASK, EOS, BLOCK = 2, 1, 4


@pytest.fixture
def model() -> LanguageModel:
    return fresh_model(SHAPE, seed=4).eval()


def test_autoregressive_takes_one_forward_a_token(model: LanguageModel) -> None:
    """Tokens per forward is one."""
    decoded = decode_autoregressive(model, [5, 6, 7], EOS, 9)
    assert decoded.forwards == len(decoded.ids)


@torch.inference_mode()
def test_cached_greedy_equals_full_recomputation(model: LanguageModel) -> None:
    """The kept keys and values change nothing."""
    prompt = [5, 6, 7]
    decoded = decode_autoregressive(model, prompt, EOS, 6).ids
    mask = torch.ones(16, 16, dtype=torch.bool).tril()[None, None]
    tokens = list(prompt)
    for _ in decoded:
        n = len(tokens)
        hidden, _ = model(torch.tensor([tokens]), torch.arange(n)[None], mask[:, :, :n, :n])
        tokens.append(int(model.logits(hidden[0, -1]).argmax()))
    assert tokens[3:] == decoded


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8])
def test_diffusion_answers_from_any_prompt_length(model: LanguageModel, length: int) -> None:
    """A prompt may end anywhere on the block grid; no mask is left in the answer."""
    decoded = decode_diffusion(model, list(range(5, 5 + length)), MASK, EOS, 12, BLOCK, Rule())
    assert 1 <= len(decoded.ids) <= 12


def test_diffusion_is_deterministic(model: LanguageModel) -> None:
    """Greedy decoding gives the same tokens twice."""
    runs = [decode_diffusion(model, [5, 6, 7], MASK, EOS, 12, BLOCK, Rule()) for _ in range(2)]
    assert runs[0] == runs[1]


def test_low_threshold_needs_at_most_one_step_a_block_and_its_closing(model: LanguageModel) -> None:
    """A block costs one forward if all is accepted, and the last one another to close."""
    rule = Rule(confidence_threshold=0.0, distance_decay=1.0, edit_threshold=1.1)
    decoded = decode_diffusion(model, [5, 6, 7, 8], MASK, 31, 8, BLOCK, rule)
    assert decoded.forwards == 3
