"""A model as the step loop sees it: rows in, logits of the wanted ones out."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from services.generation.experts import ExpertLoad
from services.generation.lean_decoder import LeanDecoder
from services.generation.packing import Layout, Pack, pack
from services.generation.prefix_cache import PrefixCache
from services.generation.sequence import Rows
from services.generation.slots import CacheShape, SlotCache, slot_length
from services.generation.transformers_decoder import TransformersDecoder


class Decoder(Protocol):
    """Computes one forward over packed rows."""

    def logits(self, pack: Pack, cache: SlotCache) -> Tensor:
        """Writes the rows' keys and values; returns the logits of the wanted rows, in order."""
        ...


class SlotModel:
    """A decoder with a slot cache; computes logits only where they are wanted.

    ``module`` is a transformers ...ForCausalLM; its dtype and device are used as
    they are, and it belongs to the slot model from here on. ``lean`` says
    whether the forward written for few rows runs where it fits, ``prefix_bytes``
    what heads of prompts may take beside the slots.
    """

    def __init__(
        self,
        module: PreTrainedModel,
        *,
        slots: int,
        max_context: int,
        lean: bool = True,
        prefix_bytes: int = 0,
    ) -> None:
        if getattr(module.config, "sliding_window", None) is not None:
            raise ValueError("models with sliding windows are not supported")
        self.slots = slots
        self.max_context = max_context
        shape = cache_shape(module)
        length = slot_length(max_context)
        sharing = module.config.num_attention_heads // module.config.num_key_value_heads
        self._layout = Layout(length, sharing, shape.dtype, shape.device)
        self._cache = SlotCache(shape, slots, max_context)
        self.prefixes = PrefixCache(self._cache, prefix_bytes)
        self.expert_load = ExpertLoad(module)
        self._decoder = _decoder(module, length, lean=lean)

    @torch.inference_mode()
    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """Runs (slot, rows) pairs; returns the wanted rows' logits, in order, as float32."""
        return self._decoder.logits(pack(batch, self._layout), self._cache).float()

    def clear(self, slot: int) -> None:
        """Forgets what a slot held, for it may not be finite."""
        self._cache.clear(slot)


def cache_shape(module: PreTrainedModel) -> CacheShape:
    """What a token's keys and values take in this decoder: its part, where it has others' too."""
    config, ways = module.config, getattr(module, "tp_size", None) or 1
    return CacheShape(
        layers=config.num_hidden_layers,
        kv_heads=config.num_key_value_heads // ways,
        head_dim=getattr(config, "head_dim", None)
        or config.hidden_size // config.num_attention_heads,
        dtype=module.dtype,
        device=module.device,
    )


@torch.inference_mode()
def _decoder(module: PreTrainedModel, length: int, *, lean: bool) -> Decoder:
    module.train(mode=False)
    if lean and LeanDecoder.fits(module):
        return LeanDecoder(module, length)
    return TransformersDecoder(module)
