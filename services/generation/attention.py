"""Attention of packed rows, each sequence over its own slot."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from services.generation.packing import Pack, Span
from services.generation.slots import SlotCache


def attend(query: Tensor, layer: int, pack: Pack, cache: SlotCache, scaling: float) -> Tensor:
    """Attends with queries [heads, rows, head_dim]; returns [rows, heads * head_dim].

    The rows' own keys and values are in the cache already.
    """
    parts = [_attend_span(query, span, layer, cache, scaling) for span in pack.spans]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _attend_span(query: Tensor, span: Span, layer: int, cache: SlotCache, scaling: float) -> Tensor:
    """One sequence's part.

    Query heads that share a key head become further rows of it, which saves
    copying the keys for each.
    """
    keys, values = cache.read(layer, span.slot, span.length)
    own = query[:, span.start : span.end]
    heads, rows, dim = own.shape
    out = nn.functional.scaled_dot_product_attention(
        own.reshape(1, keys.shape[0], -1, dim),
        keys.unsqueeze(0),
        values.unsqueeze(0),
        attn_mask=span.mask,
        scale=scaling,
    )
    return out.view(heads, rows, dim).transpose(0, 1).reshape(rows, heads * dim)
