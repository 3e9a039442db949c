"""All rows of one forward in one line, without padding.

Sequences of any length, at any stage, lie side by side as [1, rows]; only
attention looks at where one ends and the next begins. So no row pays for a
longer batch mate, and none is computed differently because of it. Neighbours
with equally many rows and not too different lengths are attended to in one
call, each over its own slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass

import torch
from torch import Tensor

from services.generation.sequence import Rows

MOST_PADDING = 2.0
"""How many times the positions that its sequences see one call of attention may read."""

Batch = Many[tuple[int, Rows]]


@dataclass(frozen=True, slots=True)
class Layout:
    """What packing has to know of the model and its cache."""

    slot_length: int
    sharing: int
    """Query heads per key head."""
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class Span:
    """Sequences with equally many rows, side by side within the pack, and what they see."""

    slots: tuple[int, ...]
    start: int
    end: int
    length: int
    """Positions of a slot that the rows see, at most."""
    mask: Tensor | None
    """Additive, shape [slots, 1, sharing * rows, length]: the rows once for each query
    head of a key head. None where every row sees all positions."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Input of one forward."""

    tokens: Tensor
    """Shape [1, rows], as positions."""
    positions: Tensor
    places: Tensor
    """Where in the slot cache each row's keys and values go, shape [rows]."""
    wanted: Tensor
    """Rows whose logits are needed, shape [wanted]."""
    spans: tuple[Span, ...]


def pack(batch: Batch, layout: Layout) -> Pack:
    """Lays (slot, rows) pairs side by side."""
    tokens: list[int] = []
    positions: list[int] = []
    places: list[int] = []
    wanted: list[int] = []
    for slot, rows in batch:
        offset = len(tokens)
        tokens += rows.tokens
        positions += range(rows.start, rows.start + len(rows.tokens))
        first_place = slot * layout.slot_length + rows.start
        places += range(first_place, first_place + len(rows.tokens))
        wanted += [offset + row for row in rows.wanted]
    return Pack(
        torch.tensor([tokens], device=layout.device),
        torch.tensor([positions], device=layout.device),
        torch.tensor(places, device=layout.device),
        torch.tensor(wanted, dtype=torch.long, device=layout.device),
        tuple(_spans(batch, layout)),
    )


def _spans(batch: Batch, layout: Layout) -> Iterator[Span]:
    start = 0
    for group in _alike(batch):
        end = start + sum(len(rows.tokens) for _, rows in group)
        yield _span(group, start, end, layout)
        start = end


def _alike(batch: Batch) -> Iterator[list[tuple[int, Rows]]]:
    """Runs of neighbours that one call of attention can take."""
    group: list[tuple[int, Rows]] = []
    longest, seen = 0, 0
    for slot, rows in batch:
        length = max(rows.reach)
        longest, seen = max(longest, length), seen + length
        fits = group and len(group[0][1].tokens) == len(rows.tokens)
        if group and not (fits and (len(group) + 1) * longest <= MOST_PADDING * seen):
            yield group
            group, longest, seen = [], length, length
        group.append((slot, rows))
    if group:
        yield group


def _span(group: list[tuple[int, Rows]], start: int, end: int, layout: Layout) -> Span:
    length = max(max(rows.reach) for _, rows in group)
    whole = all(min(rows.reach) == length for _, rows in group)
    mask = None if whole else _mask([rows.reach for _, rows in group], length, layout)
    return Span(tuple(slot for slot, _ in group), start, end, length, mask)


def _mask(reaches: list[list[int]], length: int, layout: Layout) -> Tensor:
    rows = torch.tensor([reach * layout.sharing for reach in reaches])
    hidden = torch.arange(length) >= rows[:, None, :, None]
    mask = torch.zeros(hidden.shape, dtype=layout.dtype).masked_fill_(hidden, -torch.inf)
    return mask.to(layout.device)
