"""States a block is trained in, and what each of its tokens weighs.

Uniform masks with weights 1/t are the diffusion bound (Sahoo et al., MDLM, 2024; complementary
pairs as in Wang et al., Fast-dLLM v2, 2025). Alone they wipe out the arithmetic of the
autoregressive start; masked suffixes, which decoding really meets, keep it.
"""

import torch
from torch import Tensor

from deploy.models.block_rows import Slots

TAIL_WEIGHT = 0.2
VISIBLE_WEIGHT = 0.05
_LEAST_NOISE = 0.1


def _uniform_masks(pairs: int, rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Complementary masks and their weights, `[rows, 2 * pairs, length]`."""
    rate = torch.empty(rows, pairs, 1).uniform_(_LEAST_NOISE, 1 - _LEAST_NOISE)
    mask = torch.rand(rows, pairs, length) < rate
    weights = torch.stack((1 / rate, 1 / (1 - rate)), 2).expand(rows, pairs, 2, length)
    return torch.stack((mask, ~mask), 2).flatten(1, 2), weights.flatten(1, 2)


def suffix_masks(answers: Tensor) -> Tensor:
    """Everything right of a random frontier, in half of the blocks with random reveals."""
    rows, slots, length = answers.shape
    at = answers.long().cumsum(-1) - 1
    frontier = (torch.rand(rows, slots, 1) * answers.sum(-1, keepdim=True)).long()
    frontier = torch.where(torch.rand(rows, slots, 1) < 0.4, torch.zeros_like(frontier), frontier)
    revealed = torch.rand(rows, slots, length) < 0.6 * torch.rand(rows, slots, 1)
    revealed &= (torch.rand(rows, slots, 1) < 0.5) & (at > frontier)
    return (at >= frontier) & ~revealed


def distance_weights(hidden: Tensor) -> Tensor:
    """More for what is committed first: 0.25 + 1.75 * 0.6 ** (masked ones to the left)."""
    distance = hidden.long().cumsum(-1) - 1
    return 0.25 + 1.75 * torch.pow(0.6, distance.clamp(min=0).float())


def draw_noise(slots: Slots, uniform_share: float) -> Tensor:
    """Puts every slot in a random state; returns the weights of its tokens.

    ``uniform_share`` of the slots have masks anywhere, the others masked suffixes.
    """
    rows, count, length = slots.truth.shape
    uniform, uniform_weights = _uniform_masks(count // 2, rows, length)
    suffix = suffix_masks(slots.answers)
    is_uniform = (torch.rand(rows, count // 2, 1) < uniform_share).repeat_interleave(2, 1)
    slots.hidden = torch.where(is_uniform, uniform, suffix) & slots.answers
    slots.shown = slots.truth.clone()
    weights = torch.where(is_uniform, 0.5 * uniform_weights, distance_weights(slots.hidden))
    return token_weights(slots, weights)


def token_weights(slots: Slots, masked_weights: Tensor) -> Tensor:
    """Masked ones as given, visible answers a little, end tails less, prompts nothing."""
    weights = torch.where(
        slots.hidden, masked_weights, torch.full_like(masked_weights, VISIBLE_WEIGHT)
    )
    weights = torch.where(slots.tail, TAIL_WEIGHT * weights, weights)
    return weights * slots.answers
