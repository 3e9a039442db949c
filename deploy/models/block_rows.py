"""Rows for diffusion training: clean documents, then blocks of them to be denoised.

Arriola et al., "Block Diffusion", 2025: one forward scores many noisy blocks, each against its
clean past. A block may appear several times, in different states.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from deploy.models.attention import BlockMask
from deploy.models.packing import RowFiller
from deploy.models.prompt_format import Document


@dataclass(frozen=True)
class CleanRow:
    """One row of documents on the block grid.

    All tensors are `[length]` but `candidates`, the numbers of blocks with answers.
    """

    ids: Tensor
    segments: Tensor
    answers: Tensor
    tail: Tensor
    candidates: Tensor


def clean_row(documents: list[Document], length: int, block: int, pad: int, eos: int) -> CleanRow:
    """Lays documents out; each starts a block, and end tokens fill its last block (`tail`)."""
    ids = torch.full((length,), pad)
    segments = torch.zeros(length, dtype=torch.long)
    answers = torch.zeros(length, dtype=torch.bool)
    tail = torch.zeros(length, dtype=torch.bool)
    at = 0
    for number, document in enumerate(documents, 1):
        end = at + len(document.ids)
        stop = -(-end // block) * block
        ids[at:end] = torch.tensor(document.ids)
        ids[end:stop] = eos
        segments[at:stop] = number
        answers[at + document.answer_start : stop] = True
        tail[end:stop] = True
        at = stop
    candidates = answers.view(-1, block).any(1).nonzero().flatten()
    return CleanRow(ids, segments, answers, tail, candidates)


def clean_rows(
    documents: Iterator[Document], length: int, block: int, pad: int, eos: int
) -> Iterator[CleanRow]:
    """Endless rows."""
    filler = RowFiller(documents, length, multiple=block)
    while True:
        yield clean_row(filler.next_row(), length, block, pad, eos)


@dataclass
class Slots:
    """The noisy blocks of a batch: which block each is, its truth and its state.

    `block` is `[rows, slots]`; the others are `[rows, slots, block length]`. `hidden` marks
    masked positions; `shown` holds what the model sees where nothing is masked.
    """

    block: Tensor
    truth: Tensor
    answers: Tensor
    tail: Tensor
    hidden: Tensor
    shown: Tensor


def slots_of(rows: list[CleanRow], count: int, block: int) -> Slots:
    """Slots in pairs of one block each, so that their masks may complement each other."""
    chosen = torch.stack([_spread(row.candidates, count // 2).repeat_interleave(2) for row in rows])
    index = (chosen[:, :, None] * block + torch.arange(block)).flatten(1)

    def taken(name: str) -> Tensor:
        whole = torch.stack([getattr(row, name) for row in rows])
        return whole.gather(1, index).reshape(len(rows), count, block)

    truth = taken("ids")
    answers = taken("answers")
    return Slots(chosen, truth, answers, taken("tail"), answers.clone(), truth.clone())


def _spread(candidates: Tensor, count: int) -> Tensor:
    """Every candidate about equally often, in random order."""
    rounds = -(-count // len(candidates))
    orders = [candidates[torch.randperm(len(candidates))] for _ in range(rounds)]
    return torch.cat(orders)[:count]


@dataclass(frozen=True)
class BlockBatch:
    """What one forward takes.

    `sources` is `[rows, slots * block]`: where the prediction of each slot token is found.
    """

    ids: Tensor
    positions: Tensor
    mask: BlockMask
    sources: Tensor


def block_batch(rows: list[CleanRow], slots: Slots, block: int, mask_token: int) -> BlockBatch:
    """Clean tokens and slot states side by side, with shifted sources.

    Token j of a slot is predicted at token j - 1 of it; its first token at the last token of the
    clean block before.
    """
    clean_ids = torch.stack([r.ids for r in rows])
    segments = torch.stack([r.segments for r in rows])
    length = clean_ids.size(1)
    noisy = slots.shown.masked_fill(slots.hidden, mask_token).flatten(1)
    noisy_at = (slots.block[:, :, None] * block + torch.arange(block)).flatten(1)
    noisy_segments = segments.gather(1, noisy_at)
    clean_at = torch.arange(length).expand(len(rows), -1)
    clean_block, noisy_block = clean_at // block, noisy_at // block
    same = segments[:, :, None] == segments[:, None, :]
    clean_mask = same & (clean_block[:, None, :] <= clean_block[:, :, None])
    cross = (noisy_segments[:, :, None] == segments[:, None, :]) & (
        clean_block[:, None, :] < noisy_block[:, :, None]
    )
    within = torch.arange(noisy.size(1)).expand(len(rows), -1) + length - 1
    first = (noisy_at % block) == 0
    sources = torch.where(first, (noisy_at - 1).clamp(min=0), within)
    return BlockBatch(
        torch.cat((clean_ids, noisy), 1),
        torch.cat((clean_at, noisy_at), 1),
        BlockMask(clean_mask[:, None], cross[:, None], block),
        sources,
    )
