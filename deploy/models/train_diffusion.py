"""Stages 1 and 2: the autoregressive weights learn to denoise blocks, then to be sure of it."""

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
    "json": 20, "edit": 24, "json_new_names": 10, "edit_new_names": 8, "chain": 22, "drill": 1,
    "action": 5, "copying": 2, "infill": 6, "code": 1, "span": 0.5, "conversation": 0.5,
}  # fmt: skip
RATES = Rates(matrices=0.006, rest=0.001)


@dataclass(frozen=True)
class DiffusionRun:
    """What one run needs to be repeated; `minutes` of 0 means that only steps count.

    `uniform_share` is that of blocks with masks anywhere. `entropy_weight` sharpens right
    predictions, from `entropy_from` of the run on.
    """

    seed: int = 2
    steps: int = 800
    start: str = "autoregressive.safetensors"
    result: str = "diffusion.safetensors"
    minutes: float = 0.0
    rows: int = 4
    clean: int = 320
    slots: int = 32
    rates: Rates = RATES
    falling: float = 0.4
    floor: float = 0.4
    average_keep: float = 0.99
    uniform_share: float = 0.4
    entropy_weight: float = 0.0
    entropy_from: float = 0.0


CONFIDENT = DiffusionRun(
    seed=3,
    steps=2400,
    start="diffusion.safetensors",
    result="confident.safetensors",
    falling=0.85,
    floor=0.0,
    average_keep=0.995,
    uniform_share=0.15,
    entropy_weight=0.3,
    entropy_from=0.4,
)
"""Stage 2: nearly all states are such as decoding meets, and the rate falls to nothing."""


def predictions(
    model: LanguageModel, ids: Tensor, positions: Tensor, mask: BlockMask, sources: Tensor
) -> Tensor:
    """Float32 scores of every slot token, `[rows * slots * block, vocabulary]`."""
    hidden, _ = model(ids, positions, mask)
    taken = hidden.gather(1, sources[:, :, None].expand(-1, -1, hidden.size(-1)))
    return model.logits(taken.flatten(0, 1)).float()


def denoising_loss(
    model: LanguageModel,
    batch: BlockBatch,
    truth: Tensor,
    weights: Tensor,
    masked: Tensor,
    entropy_weight: Tensor,
) -> Tensor:
    """Mean cross entropy of the slot tokens under their weights.

    Where a masked token's prediction is right, its entropy is added, so that it becomes confident
    enough to be committed together with others (the CAP loss of the LLaDA2 line).
    """
    scores = predictions(model, batch.ids, batch.positions, batch.mask, batch.sources)
    logs = functional.log_softmax(scores, dim=-1)
    losses = -logs.gather(1, truth[:, None])[:, 0]
    entropy = -(logs.exp() * logs).sum(-1)
    right = masked & (logs.detach().argmax(-1) == truth)
    losses = losses + entropy_weight * entropy * right
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
    """From the weights `run.start` to `run.result` in the folder."""
    codec = load_codec(folder)
    seed = run.seed * 1000 + ranks.rank
    torch.manual_seed(seed)
    model = load_model(folder / run.start, Shape(vocab_size=codec.size), torch.bfloat16)
    rows = row_stream(codec, seed, run.clean)
    loss_of = torch.compile(denoising_loss, dynamic=False)

    def backward(progress: float) -> float:
        taken = [next(rows) for _ in range(run.rows)]
        slots = slots_of(taken, run.slots, BLOCK)
        weights = draw_noise(slots, run.uniform_share)
        batch = block_batch(taken, slots, BLOCK, codec.special(MASK))
        sharpen = torch.tensor(run.entropy_weight if progress >= run.entropy_from else 0.0)
        loss = loss_of(
            model, batch, slots.truth.flatten(), weights.flatten(), slots.hidden.flatten(), sharpen
        )
        torch.autograd.backward(loss)
        return loss.item()

    training_loop(ranks, run, model, backward, folder / run.result)
