"""Stage 2: rollouts, edits and confident parallel commits."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from deploy.models.attention import BlockMask
from deploy.models.checkpoint import load_codec, load_model
from deploy.models.data_parallel import Ranks
from deploy.models.export import BLOCK
from deploy.models.model import LanguageModel, Shape
from deploy.models.muon import Rates
from deploy.models.rollout import Rollouts
from deploy.models.tokenizer import EOS, MASK
from deploy.models.train_diffusion import DiffusionRun, predictions, row_stream, training_loop

RATES = Rates(matrices=0.006, rest=0.001)


@dataclass(frozen=True)
class ParallelRun(DiffusionRun):
    """`entropy_weight` sharpens right predictions, from `entropy_from` of the run on."""

    seed: int = 3
    steps: int = 850
    rates: Rates = RATES
    falling: float = 0.8
    floor: float = 0.0
    average_keep: float = 0.995
    entropy_weight: float = 0.4
    entropy_from: float = 0.5


def parallel_loss(
    model: LanguageModel,
    ids: Tensor,
    positions: Tensor,
    mask: BlockMask,
    sources: Tensor,
    truth: Tensor,
    weights: Tensor,
    masked: Tensor,
    entropy_weight: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss, and each slot token's likeliest value with its probability.

    Where a masked token's prediction is right, its entropy is added, so that it becomes confident
    enough to be committed together with others.
    """
    logs = functional.log_softmax(predictions(model, ids, positions, mask, sources), dim=-1)
    confidence, best = logs.detach().max(-1)
    losses = -logs.gather(1, truth[:, None])[:, 0]
    entropy = -(logs.exp() * logs).sum(-1)
    losses = losses + entropy_weight * entropy * (masked & (best == truth))
    return (losses * weights).sum() / weights.sum(), confidence.exp(), best


def train_parallel(ranks: Ranks, run: ParallelRun, folder: Path) -> None:
    """From `diffusion.safetensors` to `parallel.safetensors` in the folder."""
    codec = load_codec(folder)
    seed = run.seed * 1000 + ranks.rank
    torch.manual_seed(seed)
    model = load_model(
        folder / "diffusion.safetensors", Shape(vocab_size=codec.size), torch.bfloat16
    )
    rows = row_stream(codec, seed, run.clean)
    rollouts = Rollouts(rows, run.rows, run.slots, BLOCK, codec.special(MASK), codec.special(EOS))
    loss_of = torch.compile(parallel_loss, dynamic=False)

    def backward(progress: float) -> float:
        batch, slots = rollouts.batch(), rollouts.slots
        sharpen = torch.tensor(run.entropy_weight if progress >= run.entropy_from else 0.0)
        loss, confidence, best = loss_of(
            model, batch.ids, batch.positions, batch.mask, batch.sources,
            slots.truth.flatten(), rollouts.weights().flatten(), slots.hidden.flatten(), sharpen,
        )  # fmt: skip
        torch.autograd.backward(loss)
        rollouts.advance(confidence, best)
        return loss.item()

    training_loop(ranks, run, model, backward, folder / "parallel.safetensors")
