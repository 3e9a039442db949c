"""Masked attention, written out: compiled for a CPU it beats the fused kernel with a mask."""

from typing import NamedTuple

import torch
from torch import Tensor


class BlockMask(NamedTuple):
    """Who sees whom in a row of clean tokens followed by noisy blocks.

    `clean` is `[rows, 1, clean, clean]`, `cross` is `[rows, 1, noisy, clean]`; a noisy token also
    sees its own block of `block` tokens, and no clean token sees a noisy one. Equal to one large
    mask, at a third of its cost.
    """

    clean: Tensor
    cross: Tensor
    block: int

    def dense(self) -> Tensor:
        """The same as one mask `[rows, 1, clean + noisy, clean + noisy]`."""
        rows, _, noisy, clean = self.cross.shape
        slot = torch.arange(noisy) // self.block
        own = (slot[:, None] == slot[None, :]).expand(rows, 1, noisy, noisy)
        upper = torch.cat((self.clean, self.clean.new_zeros(rows, 1, clean, noisy)), dim=-1)
        return torch.cat((upper, torch.cat((self.cross, own), dim=-1)), dim=-2)


Mask = Tensor | BlockMask


def _shares(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.float().masked_fill(~mask, float("-inf")).softmax(-1)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """Attention of `[batch, heads, length, head_dim]` under a boolean mask, true where allowed."""
    q = q * q.size(-1) ** -0.5
    if isinstance(mask, BlockMask):
        return _attend_blocks(q, k, v, mask)
    return _shares(q @ k.mT, mask).to(q.dtype) @ v


def _attend_blocks(q: Tensor, k: Tensor, v: Tensor, mask: BlockMask) -> Tensor:
    clean = mask.clean.size(-1)
    size = (q.size(0), q.size(1), -1, mask.block, q.size(-1))
    upper = _shares(q[:, :, :clean] @ k[:, :, :clean].mT, mask.clean).to(q.dtype) @ v[:, :, :clean]
    noisy_q, noisy_k, noisy_v = (x[:, :, clean:] for x in (q, k, v))
    across = noisy_q @ k[:, :, :clean].mT
    within = (noisy_q.reshape(size) @ noisy_k.reshape(size).mT).flatten(2, 3)
    scores = torch.cat(
        (across.float().masked_fill(~mask.cross, float("-inf")), within.float()), dim=-1
    )
    shares = scores.softmax(-1).to(q.dtype)
    own = (
        shares[..., clean:].reshape(*size[:3], mask.block, mask.block) @ noisy_v.reshape(size)
    ).flatten(2, 3)
    return torch.cat((upper, shares[..., :clean] @ v[:, :, :clean] + own), dim=2)
