"""Which masked tokens a step commits and which committed ones it replaces; pure.

Distance-aware threshold, commit edits and the rule for end tokens as in the decoding that
`braid.json` names `distance_threshold`; edits after LLaDA2.1 (2026).
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rule:
    """Decoding settings, named as in `braid.json`."""

    confidence_threshold: float = 0.95
    distance_decay: float = 0.9
    edit_threshold: float = 0.7
    max_steps: int = 16


def commits(
    confidence: Tensor,
    best: Tensor,
    hidden: Tensor,
    eos: int,
    threshold: Tensor | float,
    decay: float,
) -> Tensor:
    """The masked positions to commit, `[..., length]`.

    A position d masked ones away from the frontier needs 1 - (1 - threshold) * decay ** d. The
    likeliest one is always committed; so is the block's first token, whose logits (taken from the
    block before) no later step can improve. An end token waits until all left of it is decided.
    """
    distance = (hidden.long().cumsum(-1) - 1).clamp(min=0)
    needed = 1 - (1 - torch.as_tensor(threshold)) * torch.pow(torch.tensor(decay), distance)
    chosen = hidden & ((confidence >= needed) | (torch.arange(hidden.size(-1)) == 0))
    ends = best == eos
    chosen = chosen & ~(ends & _any_left(hidden & ~chosen))
    candidates = confidence.masked_fill(~hidden | (ends & (distance > 0)), -1.0)
    likeliest = torch.zeros_like(hidden).scatter(-1, candidates.argmax(-1, keepdim=True), True)
    return chosen | (~chosen.any(-1, keepdim=True) & hidden & likeliest)


def _any_left(flags: Tensor) -> Tensor:
    """True where some position further left is set."""
    return (flags.long().cumsum(-1) - flags.long()) > 0


def replacements(
    confidence: Tensor, best: Tensor, shown: Tensor, committed: Tensor, threshold: float
) -> Tensor:
    """The committed positions whose token another one beats with a probability above the threshold.

    The block's first token is never rescored within its block, so it is left alone.
    """
    inner = torch.arange(shown.size(-1)) > 0
    return committed & inner & (best != shown) & (confidence > threshold)
