"""The Qwen3 layout with a forward made for training; weights carry transformers' names.

Gives the same numbers as `Qwen3ForCausalLM` under the same explicit mask, so that a checkpoint
trained here needs no conversion.
"""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from deploy.models.attention import Mask, attend

Cache = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, `[batch, kv_heads, length, head_dim]`."""


@dataclass(frozen=True)
class Shape:
    """Sizes, under the names of transformers' `Qwen3Config`."""

    vocab_size: int = 2560
    hidden_size: int = 256
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    intermediate_size: int = 768
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 4096

    def as_config(self) -> dict[str, object]:
        """The sizes as a plain dict."""
        return asdict(self)


ROPE_THETA = 10_000.0


class RootMeanSquareNorm(nn.Module):
    """Normalises in float32, as Qwen3 does."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Scales each vector to root mean square one, then by the weights."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


def rotary_table(positions: Tensor, head_dim: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of shape `[batch, 1, length, head_dim]`, in float32."""
    steps = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    angles = positions[:, None, :, None].float() * (1.0 / ROPE_THETA**steps)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary position embedding (Su et al., RoFormer, 2021), half-split layout."""
    cos, sin = table
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """Grouped-query attention with normalised queries and keys."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        self.groups = shape.num_attention_heads // shape.num_key_value_heads
        inner, outer = (
            shape.num_attention_heads * shape.head_dim,
            shape.num_key_value_heads * shape.head_dim,
        )
        self.q_proj = nn.Linear(shape.hidden_size, inner, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, outer, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, outer, bias=False)
        self.o_proj = nn.Linear(inner, shape.hidden_size, bias=False)
        self.q_norm = RootMeanSquareNorm(shape.head_dim, shape.rms_norm_eps)
        self.k_norm = RootMeanSquareNorm(shape.head_dim, shape.rms_norm_eps)

    def forward(
        self,
        x: Tensor,
        table: tuple[Tensor, Tensor],
        mask: Mask,
        past: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Mixed values, and keys and values grown by these positions."""
        batch, length, _ = x.shape
        heads = (batch, length, -1, self.head_dim)
        q = rotate(self.q_norm(self.q_proj(x).view(heads)).transpose(1, 2), table)
        k = rotate(self.k_norm(self.k_proj(x).view(heads)).transpose(1, 2), table)
        v = self.v_proj(x).view(heads).transpose(1, 2)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        mixed = attend(
            q,
            k.repeat_interleave(self.groups, dim=1),
            v.repeat_interleave(self.groups, dim=1),
            mask,
        )
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1)), (k, v)


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """`down(silu(gate(x)) * up(x))`."""
        out: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn = Attention(shape)
        self.mlp = FeedForward(shape)
        self.input_layernorm = RootMeanSquareNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RootMeanSquareNorm(shape.hidden_size, shape.rms_norm_eps)

    def forward(
        self,
        x: Tensor,
        table: tuple[Tensor, Tensor],
        mask: Mask,
        past: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The next residual stream and this layer's cache."""
        mixed, present = self.self_attn(self.input_layernorm(x), table, mask, past)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), present


class Decoder(nn.Module):
    """Embedding, layers and final norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = RootMeanSquareNorm(shape.hidden_size, shape.rms_norm_eps)


class LanguageModel(nn.Module):
    """The whole model; the output head is the embedding."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Decoder(shape)

    def forward(
        self, ids: Tensor, positions: Tensor, mask: Mask, past: Cache | None = None
    ) -> tuple[Tensor, Cache]:
        """Hidden states `[batch, length, hidden]` and the grown cache.

        `mask` is boolean, `[batch, 1, length, cached + length]`, true where attention is allowed.
        """
        x = self.model.embed_tokens(ids)
        cos, sin = rotary_table(positions, self.shape.head_dim)
        table = (cos.to(x.dtype), sin.to(x.dtype))
        presents: Cache = []
        for index, layer in enumerate(self.model.layers):
            x, present = layer(x, table, mask, past[index] if past else None)
            presents.append(present)
        return self.model.norm(x), presents

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary, in the model's own dtype."""
        return functional.linear(hidden, self.model.embed_tokens.weight)


def fresh_model(shape: Shape, seed: int) -> LanguageModel:
    """Random weights: normal 0.02, projections into the residual stream smaller by depth."""
    torch.manual_seed(seed)
    model = LanguageModel(shape)
    quieter = (2 * shape.num_hidden_layers) ** -0.5
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            std = 0.02 * (quieter if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0)
            nn.init.normal_(parameter, std=std)
    return model
