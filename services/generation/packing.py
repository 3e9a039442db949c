"""All rows of one forward in one line, without padding.

Sequences of any length, at any stage, lie side by side as [1, rows]; only
attention looks at where one ends and the next begins. So no row pays for a
longer batch mate, and none is computed differently because of it.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass

import torch
from torch import Tensor

from services.generation.sequence import Rows


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
    """One sequence's rows within the pack and what they attend to."""

    slot: int
    start: int
    end: int
    length: int
    """Positions of the slot that the rows see, at most."""
    mask: Tensor | None
    """Additive, shape [sharing * rows, length]: the rows once for each query head
    of a key head. None where every row sees all positions."""


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


def pack(batch: Many[tuple[int, Rows]], layout: Layout) -> Pack:
    """Lays (slot, rows) pairs side by side."""
    tokens: list[int] = []
    positions: list[int] = []
    places: list[int] = []
    wanted: list[int] = []
    spans: list[Span] = []
    for slot, rows in batch:
        offset = len(tokens)
        tokens += rows.tokens
        positions += range(rows.start, rows.start + len(rows.tokens))
        first_place = slot * layout.slot_length + rows.start
        places += range(first_place, first_place + len(rows.tokens))
        wanted += [offset + row for row in rows.wanted]
        spans.append(_span(slot, offset, rows, layout))
    return Pack(
        torch.tensor([tokens], device=layout.device),
        torch.tensor([positions], device=layout.device),
        torch.tensor(places, device=layout.device),
        torch.tensor(wanted, dtype=torch.long, device=layout.device),
        tuple(spans),
    )


def _span(slot: int, offset: int, rows: Rows, layout: Layout) -> Span:
    length = max(rows.reach)
    mask = None if min(rows.reach) == length else _mask(rows.reach, length, layout)
    return Span(slot, offset, offset + len(rows.tokens), length, mask)


def _mask(reach: list[int], length: int, layout: Layout) -> Tensor:
    hidden = torch.arange(length) >= torch.tensor(reach * layout.sharing).unsqueeze(-1)
    mask = torch.zeros(hidden.shape, dtype=layout.dtype).masked_fill_(hidden, -torch.inf)
    return mask.to(layout.device)
