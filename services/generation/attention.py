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
    """The part of sequences with equally many rows.

    Query heads that share a key head become further rows of it, which saves
    copying the keys for each.
    """
    keys, values = cache.read(layer, span.slots, span.length)
    count, kv_heads, _, dim = keys.shape
    own = query[:, span.start : span.end]
    heads, rows = own.shape[0], own.shape[1] // count
    grouped = own.reshape(kv_heads, -1, count, rows, dim).permute(2, 0, 1, 3, 4)
    out = nn.functional.scaled_dot_product_attention(
        grouped.reshape(count, kv_heads, -1, dim),
        keys,
        values,
        attn_mask=span.mask,
        scale=scaling,
    )
    apart = out.view(count, heads, rows, dim).transpose(1, 2)
    return apart.reshape(count * rows, heads * dim)
