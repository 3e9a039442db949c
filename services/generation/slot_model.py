"""Runs a transformers decoder over packed rows and slots.

The decoder's own code computes everything but attention. That goes through
transformers' attention interface, where each sequence reads its slot alone. Any
decoder that calls the interface works as it is (Llama, Qwen2, Qwen3, Qwen3-MoE,
...), causal or block-causal.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from services.generation.packing import Layout, Pack, Span, pack
from services.generation.sequence import Rows
from services.generation.slots import CacheShape, SlotCache, slot_length

_ATTENTION = "braid_slots"


class SlotModel:
    """A decoder with a slot cache; computes logits only where they are wanted.

    ``module`` is a transformers ...ForCausalLM without sliding windows; its
    dtype and device are used as they are.
    """

    def __init__(self, module: PreTrainedModel, *, slots: int, max_context: int) -> None:
        self.slots = slots
        self.max_context = max_context
        self._module = module.eval()  # type: ignore[no-untyped-call]  # transformers
        self._module.set_attn_implementation(_ATTENTION)
        shape = cache_shape(module)
        self._layout = Layout(
            slot_length=slot_length(max_context),
            sharing=module.config.num_attention_heads // shape.kv_heads,
            dtype=shape.dtype,
        )
        self._cache = SlotCache(shape, slots, max_context)

    @torch.inference_mode()
    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """Runs (slot, rows) pairs; returns the wanted rows' logits, in order, as float32."""
        packed = pack(batch, self._layout)
        hidden = self._module.model(
            input_ids=packed.tokens,
            position_ids=packed.positions,
            use_cache=False,
            slot_cache=self._cache,
            slot_pack=packed,
        ).last_hidden_state
        logits: Tensor = self._module.lm_head(hidden[0, packed.wanted])
        return logits.float()


def cache_shape(module: PreTrainedModel) -> CacheShape:
    """What a token's keys and values take in this decoder."""
    config = module.config
    return CacheShape(
        layers=config.num_hidden_layers,
        kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None)
        or config.hidden_size // config.num_attention_heads,
        dtype=module.dtype,
        device=module.device,
    )


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    *,
    slot_cache: SlotCache,
    slot_pack: Pack,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of packed rows [1, heads, rows, head_dim]; writes their keys and values first."""
    layer: int = module.layer_idx  # type: ignore[assignment]
    slot_cache.write(layer, slot_pack.places, key[0], value[0])
    parts = [
        _attend_span(query[0, :, span.start : span.end], span, layer, slot_cache, scaling)
        for span in slot_pack.spans
    ]
    out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return out.transpose(0, 1).unsqueeze(0), None


def _attend_span(
    query: Tensor, span: Span, layer: int, cache: SlotCache, scaling: float | None
) -> Tensor:
    """Attention of one sequence, [heads, rows, head_dim].

    Query heads that share a key head become further rows of it, which saves
    copying the keys for each.
    """
    keys, values = cache.read(layer, span.slot, span.length)
    heads, rows, dim = query.shape
    out = nn.functional.scaled_dot_product_attention(
        query.reshape(1, keys.shape[0], -1, dim),
        keys.unsqueeze(0),
        values.unsqueeze(0),
        attn_mask=span.mask,
        scale=scaling,
    )
    return out.view(heads, rows, dim)


AttentionInterface.register(_ATTENTION, attend)
