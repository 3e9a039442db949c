"""Stage 1: the autoregressive weights learn to denoise blocks."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from deploy.models.attention import BlockMask
from deploy.models.block_rows import BlockBatch, CleanRow, block_batch, clean_rows, slots_of
from deploy.models.checkpoint import load_codec, load_model, save_weights
from deploy.models.corpus.mixture import examples
from deploy.models.data_parallel import Ranks, Schedule
from deploy.models.export import BLOCK
from deploy.models.model import LanguageModel, Shape
from deploy.models.muon import MovingAverage, Optimiser, Rates
from deploy.models.noise import draw_noise
from deploy.models.prompt_format import PromptEncoder
from deploy.models.tokenizer import EOS, MASK, PAD, TextCodec

SHARES = {
    "json": 24, "edit": 24, "chain": 32, "drill": 2, "action": 8,
    "copying": 4, "infill": 6, "code": 2, "span": 0.5, "conversation": 1.5,
}  # fmt: skip
RATES = Rates(matrices=0.006, rest=0.001)


@dataclass(frozen=True)
class DiffusionRun:
    """What one run needs to be repeated; `minutes` of 0 means that only steps count."""

    seed: int = 2
    steps: int = 400
    minutes: float = 0.0
    rows: int = 4
    clean: int = 256
    slots: int = 32
    rates: Rates = RATES
    falling: float = 0.5
    floor: float = 0.5
    average_keep: float = 0.99


def predictions(
    model: LanguageModel, ids: Tensor, positions: Tensor, mask: BlockMask, sources: Tensor
) -> Tensor:
    """Float32 scores of every slot token, `[rows * slots * block, vocabulary]`."""
    hidden, _ = model(ids, positions, mask)
    taken = hidden.gather(1, sources[:, :, None].expand(-1, -1, hidden.size(-1)))
    return model.logits(taken.flatten(0, 1)).float()


def denoising_loss(
    model: LanguageModel,
    ids: Tensor,
    positions: Tensor,
    mask: BlockMask,
    sources: Tensor,
    truth: Tensor,
    weights: Tensor,
) -> Tensor:
    """Mean cross entropy of the slot tokens under their weights."""
    scores = predictions(model, ids, positions, mask, sources)
    losses = functional.cross_entropy(scores, truth, reduction="none")
    return (losses * weights).sum() / weights.sum()


def row_stream(codec: TextCodec, seed: int, clean: int) -> Iterator[CleanRow]:
    """Clean rows of the diffusion mixture."""
    encoder = PromptEncoder(codec)
    documents = (encoder.document(e) for e in examples(seed, shares=SHARES))
    return clean_rows(documents, clean, BLOCK, codec.special(PAD), codec.special(EOS))


def training_loop(
    ranks: Ranks,
    run: DiffusionRun,
    model: LanguageModel,
    backward: Callable[[float], float],
    path: Path,
    every_minutes: float = 4.0,
) -> None:
    """Steps until the run is over; `backward(progress)` leaves gradients and returns the loss.

    What is saved is the moving average of the weights: the noise of small batches is what limits
    this training.
    """
    optimiser = Optimiser(model, run.rates, ranks)
    average = MovingAverage(optimiser.masters, run.average_keep)
    schedule = Schedule(run.steps, run.minutes, run.falling, run.floor)
    step, progress, began, saved = 0, 0.0, time.monotonic(), 0.0
    recent = torch.zeros(0)
    while progress < 1.0:
        agreed = torch.tensor([schedule.progress(step), backward(progress)])
        gradients = ranks.average_gradients(optimiser.parameters, agreed)
        progress = agreed[0].item()
        optimiser.step(gradients, schedule.scale(progress, step))
        average.update(optimiser.masters)
        step, seconds = step + 1, time.monotonic() - began
        recent = torch.cat((recent, agreed[1:]))[-50:]
        if not ranks.leads:
            continue
        if step % 20 == 0:
            print(
                f"step {step} progress {progress:.3f} loss {recent.mean():.4f} s {seconds:.0f}",
                flush=True,
            )
        if seconds - saved > 60 * every_minutes or progress >= 1.0:
            save_weights(average.values, model, path)
            saved = seconds


def train_diffusion(ranks: Ranks, run: DiffusionRun, folder: Path) -> None:
    """From `autoregressive.safetensors` to `diffusion.safetensors` in the folder."""
    codec = load_codec(folder)
    torch.manual_seed(run.seed * 1000 + ranks.rank)
    model = load_model(
        folder / "autoregressive.safetensors", Shape(vocab_size=codec.size), torch.bfloat16
    )
    rows = row_stream(codec, run.seed * 1000 + ranks.rank, run.clean)
    loss_of = torch.compile(denoising_loss, dynamic=False)

    def backward(_: float) -> float:
        batch, truth, weights = _fresh_batch(rows, run, codec)
        loss = loss_of(model, batch.ids, batch.positions, batch.mask, batch.sources, truth, weights)
        torch.autograd.backward(loss)
        return loss.item()

    training_loop(ranks, run, model, backward, folder / "diffusion.safetensors")


def _fresh_batch(
    rows: Iterator[CleanRow], run: DiffusionRun, codec: TextCodec
) -> tuple[BlockBatch, Tensor, Tensor]:
    """New rows in random states, with the truth and weights of every slot token."""
    taken = [next(rows) for _ in range(run.rows)]
    slots = slots_of(taken, run.slots, BLOCK)
    weights = draw_noise(slots)
    return (
        block_batch(taken, slots, BLOCK, codec.special(MASK)),
        slots.truth.flatten(),
        weights.flatten(),
    )
