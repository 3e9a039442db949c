"""Any transformers decoder over packed rows and slots, run by its own code."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from services.generation.attention import attend
from services.generation.packing import Pack
from services.generation.slots import SlotCache

_ATTENTION = "braid_slots"


class TransformersDecoder:
    """Runs the decoder's own layers, but for attention over the slots.

    Attention goes through transformers' attention interface. Any ...ForCausalLM
    that calls it works, causal or block-causal (Llama, Qwen2, Qwen3, Qwen3-MoE).
    """

    def __init__(self, module: PreTrainedModel) -> None:
        module.set_attn_implementation(_ATTENTION)
        self._module = module

    def logits(self, pack: Pack, cache: SlotCache) -> Tensor:
        """Logits of the wanted rows."""
        hidden = self._module.model(
            input_ids=pack.tokens,
            position_ids=pack.positions,
            use_cache=False,
            slot_pack=pack,
            slot_cache=cache,
        ).last_hidden_state
        logits: Tensor = self._module.lm_head(hidden[0, pack.wanted])
        return logits


def _attend_over_slots(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    *,
    slot_pack: Pack,
    slot_cache: SlotCache,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of packed rows, tensors [1, heads, rows, head_dim], as transformers calls it."""
    layer: int = module.layer_idx  # type: ignore[assignment]
    slot_cache.write(layer, slot_pack.places, key[0], value[0])
    return attend(query[0], layer, slot_pack, slot_cache, scaling).unsqueeze(0), None


AttentionInterface.register(_ATTENTION, _attend_over_slots)
