"""Runs sequences over a slot model without an engine, and decodes without a cache."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from services.generation.sampling import predict
from services.generation.sequence import Family, Figures, Progress, Rows, Sequence
from services.generation.types import FinishReason, Job
from tests.generation.tiny import MASK


class Model(Protocol):
    """A slot model, or what stands in for one."""

    def forward(self, batch: list[tuple[int, Rows]]) -> Tensor:
        """Logits of the rows wanted."""
        ...


class Answer:
    """What came out of one sequence."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        self.tokens: list[int] = []
        self.blocks: list[int] = []
        self.finish: FinishReason | None = None


def decode(model: Model, family: Family, jobs: Many[Job]) -> list[Answer]:
    """Runs all jobs together, each in the slot of its number, until they end."""
    sequences = [family.open(job) for job in jobs]
    answers = [Answer(sequence.figures) for sequence in sequences]
    while running := [i for i, answer in enumerate(answers) if answer.finish is None]:
        asked = [(i, sequences[i].rows()) for i in running]
        draws = [draw for _, rows in asked for draw in rows.all_draws()]
        spreads = [spread for _, rows in asked for spread in rows.all_spreads()]
        predictions = predict(model.forward(asked), draws, [MASK], spreads)
        start = 0
        for i, rows in asked:
            end = start + len(rows.wanted)
            progress = sequences[i].accept(predictions.part(start, end))
            for piece in progress.pieces:
                answers[i].tokens += piece.tokens
                answers[i].blocks += [piece.block_index] * len(piece.tokens)
            answers[i].finish = progress.finish
            start = end
    return answers


def step(model: Model, sequence: Sequence) -> Progress:
    """One forward of one sequence in slot 0."""
    rows = sequence.rows()
    predictions = predict(model.forward([(0, rows)]), rows.all_draws(), [MASK], rows.all_spreads())
    return sequence.accept(predictions)


@torch.no_grad()
def block_causal_logits(model: PreTrainedModel, tokens: Many[int], block_length: int) -> Tensor:
    """Logits of the whole document in one forward without a cache."""
    block = torch.arange(len(tokens)) // block_length
    hidden = block[None, :] > block[:, None]
    mask = torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)[None, None]
    ids = torch.tensor([list(tokens)])
    logits: Tensor = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[0]
    return logits
