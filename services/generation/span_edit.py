"""An edit of spans in progress: what is written, what is left to do."""

from __future__ import annotations

from dataclasses import replace

from services.generation.figures import joined
from services.generation.gaps import gap_of
from services.generation.types import Delta, Draft, Edit, Event, Finished, FinishReason, Infill


class SpanEdit:
    """Fills one span after the other; what lies between them stays byte for byte.

    Each span may take what ``shares`` gives it, or an even share of the ``tokens``
    that are left. Once time is up the remaining spans stay as they were.
    """

    def __init__(self, edit: Edit, tokens: int, shares: tuple[int, ...] = ()) -> None:
        self._edit = edit
        self._left = tokens
        self._shares = shares
        self._written = ""
        self._copied = 0
        self._kept = 0
        """Characters before the span that is being filled."""
        self._block = 0
        self._blocks_before = 0
        self._ends: list[Finished] = []

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """What is to be filled, in order."""
        return self._edit.spans

    @property
    def written(self) -> str:
        """The answer so far."""
        return self._written

    @property
    def may_leave(self) -> bool:
        """Whether an earlier span has been filled and nothing of the present one sent."""
        return bool(self._ends) and len(self._written) == self._kept

    @property
    def late(self) -> bool:
        """Whether the answer's time was up in the latest span."""
        return self._ends[-1].finish_reason is FinishReason.DEADLINE

    @property
    def finished(self) -> Finished:
        """The end of the whole answer."""
        return joined(self._ends)

    def copy(self, until: int | None = None) -> list[Delta]:
        """The kept text up to character ``until``, or to the end."""
        kept = self._edit.text[self._copied : until]
        self._written += kept
        return [Delta(kept, self._block)] if kept else []

    def gap(self, span: tuple[int, int]) -> tuple[Infill, int]:
        """The next span as a gap in the text as it is now, and its share of tokens."""
        self._copied, self._kept = span[1], len(self._written)
        done = len(self._ends)
        even = self._left // (len(self._edit.spans) - done)
        share = self._shares[done] if self._shares else even
        return gap_of(self._edit, self._written, span[1]), share

    def leave(self, span: tuple[int, int]) -> None:
        """There was no time for this span: it and those behind it stay as they were."""
        self._copied = span[0]
        reason = FinishReason.DEADLINE
        self._ends[-1] = replace(self._ends[-1], finish_reason=reason, best_effort=True)

    def take(self, event: Event) -> list[Delta | Draft]:
        """What an event of the span's sequence adds to the answer."""
        if isinstance(event, Finished):
            self._ends.append(event)
            self._left -= event.usage.completion_tokens
            self._blocks_before = self._block = self._block + 1
            return []
        block = self._blocks_before + event.block_index
        if isinstance(event, Delta):
            self._written += event.text
            self._block = block
        return [replace(event, block_index=block)]
