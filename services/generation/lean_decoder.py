"""The Llama family's forward, written for few rows.

transformers' own layers spend more time between their kernels than in them
when a forward has 1 to 32 rows of a small model. These are the same equations
in half as many calls: one product for queries, keys and values, one for gate
and up, one rotation for all heads, and nothing for rows that nobody asks about
once their keys and values are written. Tested equal to transformers' code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, rms_norm, silu
from transformers import PreTrainedModel

from services.generation.attention import attend
from services.generation.packing import Pack
from services.generation.slots import SlotCache

ARCHITECTURES = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's weights, joined where they share an input."""

    attention_norm: Tensor
    query_key_value: Tensor
    query_key_value_bias: Tensor | None
    head_norm: Tensor | None
    """Weights of the norm over each query and key head, [heads, head_dim]."""
    out: nn.Linear
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


class LeanDecoder:
    """A dense decoder of the Llama, Qwen2 or Qwen3 layout.

    Joined weights replace the module's own, so that nothing is held twice.
    """

    def __init__(self, module: PreTrainedModel, max_positions: int) -> None:
        config, model = module.config, module.model
        self._heads = config.num_attention_heads
        self._turned_heads = self._heads + config.num_key_value_heads
        self._eps = config.rms_norm_eps
        self._embed = model.embed_tokens
        self._layers = [_layer(layer, self._heads) for layer in model.layers]
        self._head_dim = model.layers[0].self_attn.head_dim
        self._norm = model.norm.weight
        self._head = module.lm_head
        self._cos, self._sin = _rotation(module, max_positions)

    @staticmethod
    def fits(module: PreTrainedModel) -> bool:
        """Whether the module's layout is one of those this computes."""
        config = module.config
        return (
            config.model_type in ARCHITECTURES
            and config.hidden_act == "silu"
            and not getattr(config, "mlp_bias", False)
            and type(module.model.layers[0].mlp.up_proj.weight) is nn.Parameter  # not quantized
            and module.model.rotary_emb.rope_type != "dynamic"
        )

    def logits(self, pack: Pack, cache: SlotCache) -> Tensor:
        """Logits of the wanted rows."""
        positions = pack.positions[0]
        cos, sin = self._cos[positions], self._sin[positions]
        hidden = self._embed(pack.tokens[0])
        for index, layer in enumerate(self._layers):
            attended = self._attend(hidden, index, layer, cos, sin, pack, cache)
            if index == len(self._layers) - 1:
                attended, hidden = attended[pack.wanted], hidden[pack.wanted]
            hidden = hidden + layer.out(attended)
            normed = rms_norm(hidden, hidden.shape[-1:], layer.mlp_norm, self._eps)
            gate, up = linear(normed, layer.gate_up).chunk(2, dim=-1)
            hidden = hidden + linear(silu(gate).mul_(up), layer.down)
        logits: Tensor = self._head(rms_norm(hidden, hidden.shape[-1:], self._norm, self._eps))
        return logits

    def _attend(
        self,
        hidden: Tensor,
        index: int,
        layer: _Layer,
        cos: Tensor,
        sin: Tensor,
        pack: Pack,
        cache: SlotCache,
    ) -> Tensor:
        """Attention of one layer without its output product, [rows, heads * head_dim]."""
        normed = rms_norm(hidden, hidden.shape[-1:], layer.attention_norm, self._eps)
        joined = linear(normed, layer.query_key_value, layer.query_key_value_bias)
        heads = joined.view(len(hidden), -1, self._head_dim)
        turned, values = heads[:, : self._turned_heads], heads[:, self._turned_heads :]
        if layer.head_norm is not None:
            turned = rms_norm(turned, turned.shape[-1:], None, self._eps) * layer.head_norm
        half = turned.roll(self._head_dim // 2, dims=-1)
        turned = torch.addcmul(turned * cos, half, sin).transpose(0, 1)
        cache.write(index, pack.places, turned[self._heads :], values.transpose(0, 1))
        return attend(turned[: self._heads], index, pack, cache, self._head_dim**-0.5)


def _layer(layer: Any, heads: int) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    projections = [attention.q_proj, attention.k_proj, attention.v_proj]
    biases = [projection.bias for projection in projections]
    return _Layer(
        attention_norm=layer.input_layernorm.weight,
        query_key_value=_join(projections),
        query_key_value_bias=None if biases[0] is None else torch.cat(biases),
        head_norm=_head_norm(attention, heads),
        out=attention.o_proj,
        mlp_norm=layer.post_attention_layernorm.weight,
        gate_up=_join([mlp.gate_proj, mlp.up_proj]),
        down=mlp.down_proj.weight,
    )


def _join(projections: list[nn.Linear]) -> Tensor:
    """Weights one below the other; the projections become views of them."""
    joined = torch.cat([projection.weight.data for projection in projections])
    start = 0
    for projection in projections:
        end = start + projection.out_features
        projection.weight.data = joined[start:end]
        start = end
    return joined


def _head_norm(attention: Any, heads: int) -> Tensor | None:
    """Qwen3 norms each query and key head; one row of weights for each of them."""
    if not hasattr(attention, "q_norm"):
        return None
    query, key = attention.q_norm.weight, attention.k_norm.weight
    sharing = attention.num_key_value_groups
    weights: Tensor = torch.cat([query.expand(heads, -1), key.expand(heads // sharing, -1)])
    return weights


def _rotation(module: PreTrainedModel, max_positions: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of all positions, [positions, 1, head_dim].

    The sines' first half is negated: turning then is x * cos + roll(x) * sin.
    """
    positions = torch.arange(max_positions, device=module.device)[None]
    cos, sin = module.model.rotary_emb(module.model.embed_tokens.weight, positions)
    first, second = sin[0].chunk(2, dim=-1)
    return cos[0].unsqueeze(1), torch.cat([-first, second], dim=-1).unsqueeze(1)
