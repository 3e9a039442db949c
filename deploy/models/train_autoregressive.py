"""Stage 0: next-token training."""

import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from deploy.models.checkpoint import load_codec, load_model, save_weights
from deploy.models.corpus.mixture import examples
from deploy.models.data_parallel import Ranks, Schedule
from deploy.models.model import LanguageModel, Shape, fresh_model
from deploy.models.muon import Optimiser, Rates
from deploy.models.packing import packed_rows
from deploy.models.prompt_format import PromptEncoder
from deploy.models.tokenizer import PAD

RATES = Rates(matrices=0.012, rest=0.002)


@dataclass(frozen=True)
class AutoregressiveRun:
    """What one run needs to be repeated.

    `minutes` of 0 means that only steps count; `start` names weights to go on from.
    """

    seed: int = 1
    steps: int = 4600
    minutes: float = 0.0
    rows: int = 6
    length: int = 320
    rates: Rates = RATES
    falling: float = 0.4
    start: str = ""


def weighted_loss(
    model: LanguageModel,
    ids: Tensor,
    mask: Tensor,
    scored: Tensor,
    targets: Tensor,
    weights: Tensor,
) -> Tensor:
    """Mean cross entropy of the scored positions under their weights."""
    positions = torch.arange(ids.size(1)).expand(ids.size(0), -1)
    hidden, _ = model(ids, positions, mask)
    scores = model.logits(hidden.flatten(0, 1)[scored]).float()
    losses = functional.cross_entropy(scores, targets, reduction="none")
    return (losses * weights).sum() / weights.sum()


def _starting_model(folder: Path, shape: Shape, run: AutoregressiveRun) -> LanguageModel:
    if run.start:
        return load_model(folder / run.start, shape, torch.bfloat16)
    return fresh_model(shape, run.seed).bfloat16()


def train_autoregressive(ranks: Ranks, run: AutoregressiveRun, folder: Path) -> None:
    """Trains from random weights and leaves `autoregressive.safetensors` in the folder."""
    codec = load_codec(folder)
    encoder = PromptEncoder(codec)
    model = _starting_model(folder, Shape(vocab_size=codec.size), run)
    optimiser = Optimiser(model, run.rates, ranks)
    documents = (encoder.document(e) for e in examples(run.seed * 1000 + ranks.rank))
    batches = packed_rows(documents, run.rows, run.length, codec.special(PAD))
    loss_of = torch.compile(weighted_loss, dynamic=False)
    schedule = Schedule(run.steps, run.minutes, run.falling)
    step, progress, began = 0, 0.0, time.monotonic()
    while progress < 1.0:
        batch = next(batches)
        scored = batch.scored()
        targets, weights = batch.targets.flatten()[scored], batch.weights.flatten()[scored]
        loss = loss_of(model, batch.ids, batch.causal_mask(), scored, targets, weights)
        torch.autograd.backward(loss)
        agreed = torch.tensor([schedule.progress(step), loss.item()])
        gradients = ranks.average_gradients(optimiser.parameters, agreed)
        progress = agreed[0].item()
        optimiser.step(gradients, schedule.scale(progress, step))
        step += 1
        if ranks.leads and step % 20 == 0:
            seconds = time.monotonic() - began
            print(f"step {step} at {progress:.3f} loss {agreed[1]:.4f} s {seconds:.0f}", flush=True)
        if ranks.leads and (step % 400 == 0 or progress >= 1.0):
            save_weights(optimiser.masters, model, folder / "autoregressive.safetensors")
