"""Packed rows over preallocated slots give exactly what a plain forward gives."""

from __future__ import annotations

import copy

import pytest
import torch

from services.generation.lean_decoder import LeanDecoder
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from tests.generation.decoding import block_causal_logits
from tests.generation.tiny import ARCHITECTURES, BLOCK, decoder, prompt


def block_rows(tokens: tuple[int, ...], start: int, end: int) -> Rows:
    """Block-causal rows of a document's part, all of them wanted."""
    reach = [(position // BLOCK + 1) * BLOCK for position in range(start, end)]
    return Rows(list(tokens[start:end]), start, reach, list(range(end - start)))


LEAN = pytest.mark.parametrize("lean", [True, False], ids=["lean", "transformers"])


@LEAN
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_cached_chunks_equal_one_full_forward(architecture: str, *, lean: bool) -> None:
    """Block-causal rows over the slot cache give what a forward without a cache gives."""
    module = decoder(architecture)
    tokens = prompt(4 * BLOCK)
    expected = block_causal_logits(copy.deepcopy(module), tokens, BLOCK)
    model = SlotModel(module, slots=3, max_context=64, lean=lean)
    first = model.forward([(2, block_rows(tokens, 0, BLOCK))])
    rest = model.forward([(2, block_rows(tokens, BLOCK, 4 * BLOCK))])
    torch.testing.assert_close(torch.cat([first, rest]), expected, atol=1e-5, rtol=1e-4)


@LEAN
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_of_different_lengths_share_a_forward(architecture: str, *, lean: bool) -> None:
    """Each sequence of a mixed batch gets the logits it gets alone."""
    module = decoder(architecture)
    documents = [prompt(length, number) for number, length in enumerate((BLOCK, 3 * BLOCK, 16))]
    expected = [block_causal_logits(copy.deepcopy(module), tokens, BLOCK) for tokens in documents]
    model = SlotModel(module, slots=3, max_context=64, lean=lean)
    batch = [(slot, block_rows(tokens, 0, len(tokens))) for slot, tokens in enumerate(documents)]
    torch.testing.assert_close(model.forward(batch), torch.cat(expected), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_the_lean_forward_keeps_the_weights(architecture: str) -> None:
    """The module still computes the same after its weights were joined, and none is held twice."""
    module = decoder(architecture)
    tokens = prompt(2 * BLOCK)
    expected = block_causal_logits(module, tokens, BLOCK)
    assert LeanDecoder.fits(module)
    LeanDecoder(module, 64)
    assert torch.equal(block_causal_logits(module, tokens, BLOCK), expected)
    attention = module.model.layers[0].self_attn
    shared = {p.weight.untyped_storage().data_ptr() for p in (attention.q_proj, attention.v_proj)}
    assert len(shared) == 1


def test_the_lean_forward_computes_biases() -> None:
    """Biases of queries, keys, values and the output product are added."""
    module = decoder("llama", attention_bias=True)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if name.endswith("bias"):
                weight.normal_()
    tokens = prompt(2 * BLOCK)
    expected = block_causal_logits(copy.deepcopy(module), tokens, BLOCK)
    model = SlotModel(module, slots=1, max_context=64)
    rows = block_rows(tokens, 0, 2 * BLOCK)
    torch.testing.assert_close(model.forward([(0, rows)]), expected, atol=1e-5, rtol=1e-4)


def test_sliding_windows_are_refused() -> None:
    """A model whose attention forgets is not served wrongly."""
    module = decoder()
    module.config.sliding_window = 16
    with pytest.raises(ValueError, match="sliding"):
        SlotModel(module, slots=1, max_context=64)


def test_a_later_forward_replaces_keys_and_values() -> None:
    """A slot used before, noisy rows included, leaves no trace in the next use."""
    module = decoder()
    tokens = prompt(2 * BLOCK)
    expected = block_causal_logits(copy.deepcopy(module), tokens, BLOCK)
    model = SlotModel(module, slots=1, max_context=64)
    model.forward([(0, block_rows(prompt(4 * BLOCK, 9), 0, 4 * BLOCK))])
    torch.testing.assert_close(
        model.forward([(0, block_rows(tokens, 0, 2 * BLOCK))]), expected, atol=1e-5, rtol=1e-4
    )


def test_only_wanted_rows_get_logits() -> None:
    """Logits have one row for each wanted row, in their order."""
    model = SlotModel(decoder(), slots=2, max_context=64)
    rows = block_rows(prompt(BLOCK), 0, BLOCK)
    whole = model.forward([(0, rows)])
    part = model.forward([(0, Rows(rows.tokens, 0, rows.reach, [1, 5]))])
    torch.testing.assert_close(part, whole[[1, 5]])
    assert model.forward([(0, Rows(rows.tokens, 0, rows.reach, []))]).shape[0] == 0
