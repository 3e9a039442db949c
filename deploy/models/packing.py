"""Documents side by side in rows of fixed length."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from deploy.models.prompt_format import Document

CODE_PROMPT_WEIGHT, PROMPT_WEIGHT = 0.3, 0.02
"""Weight of prompt tokens in the loss: code is worth learning as text, other prompts hardly."""


@dataclass(frozen=True)
class PackedRows:
    """All are `[rows, length]`; `segments` numbers the documents of a row from 1."""

    ids: Tensor
    targets: Tensor
    weights: Tensor
    segments: Tensor

    def causal_mask(self) -> Tensor:
        """`[rows, 1, length, length]`: each token sees its own document up to itself."""
        length = self.ids.size(1)
        same = self.segments[:, :, None] == self.segments[:, None, :]
        return (same & torch.ones(length, length, dtype=torch.bool).tril())[:, None]

    def scored(self, share: float = 0.5) -> Tensor:
        """Flat indices of the positions worth scoring: the heaviest, in a fixed number."""
        flat = self.weights.flatten()
        return (flat + 1e-3 * torch.rand_like(flat)).topk(int(share * flat.numel())).indices


def _prompt_weight(document: Document) -> float:
    return CODE_PROMPT_WEIGHT if document.kind in {"infill", "code"} else PROMPT_WEIGHT


class RowFiller:
    """Chooses which documents share a row: the oldest one waiting, then whatever fits best.

    With a pool to choose from hardly a token of a row stays empty.
    """

    def __init__(
        self, documents: Iterator[Document], length: int, multiple: int = 1, pool: int = 256
    ) -> None:
        self._documents, self._length, self._multiple = documents, length, multiple
        self._waiting: list[Document] = []
        self._pool = pool

    def room(self, document: Document) -> int:
        """Tokens it takes when documents start at multiples of `multiple`."""
        return -(-len(document.ids) // self._multiple) * self._multiple

    def next_row(self) -> list[Document]:
        """Documents whose rooms add up to at most the row's length."""
        while len(self._waiting) < self._pool:
            document = next(self._documents)
            if self.room(document) <= self._length:
                self._waiting.append(document)
        row = [self._waiting.pop(0)]
        left = self._length - self.room(row[0])
        while fitting := [d for d in self._waiting if self.room(d) <= left]:
            row.append(max(fitting, key=self.room))
            self._waiting.remove(row[-1])
            left -= self.room(row[-1])
        return row


def packed_rows(
    documents: Iterator[Document], rows: int, length: int, pad: int
) -> Iterator[PackedRows]:
    """Endless batches for next-token training."""
    filler = RowFiller(documents, length)
    while True:
        ids = torch.full((rows, length), pad)
        targets = torch.full((rows, length), pad)
        weights = torch.zeros(rows, length)
        segments = torch.zeros(rows, length, dtype=torch.long)
        for row in range(rows):
            at = 0
            for number, document in enumerate(filler.next_row(), 1):
                n = len(document.ids)
                tokens = torch.tensor(document.ids)
                ids[row, at : at + n] = tokens
                segments[row, at : at + n] = number
                targets[row, at : at + n - 1] = tokens[1:]
                weights[row, at : at + n - 1] = _prompt_weight(document)
                weights[row, at + document.answer_start - 1 : at + n - 1] = 1.0
                at += n
        yield PackedRows(ids, targets, weights, segments)
