"""The tokens of one document under denoising, on a grid of blocks."""

from __future__ import annotations

from collections.abc import Iterator


class Canvas:
    """A prompt and the answer that grows behind it, block by block.

    Blocks start at multiples of ``block_length`` from the document's first
    token, so that the first open one may begin with the prompt's tail; or, with
    ``from_answer``, from the answer's first. Positions from ``limit`` on stay
    masked for ever: they fill up the last block.
    """

    def __init__(
        self,
        prompt: tuple[int, ...],
        max_new_tokens: int,
        block_length: int,
        mask_id: int,
        *,
        from_answer: bool = False,
    ) -> None:
        self.block_length = block_length
        self.prompt_length = len(prompt)
        self.limit = len(prompt) + max_new_tokens
        self._phase = len(prompt) % block_length if from_answer else 0
        self.open = self._block(len(prompt)) * block_length + self._phase
        """First position of the open block."""
        self.closed = False
        """Whether there is no open block any more."""
        self._mask_id = mask_id
        self._pinned: set[int] = set()
        self._tokens = [*prompt, *[mask_id] * (self.end - len(prompt))]

    @property
    def end(self) -> int:
        """One past the open block, or past the last one if there is none."""
        return self.open if self.closed else self.open + self.block_length

    @property
    def first(self) -> int:
        """First answer position of the open block."""
        return max(self.prompt_length, self.open)

    @property
    def frontier(self) -> int:
        """First undecided answer position."""
        return next(iter(self.masked()), min(self.end, self.limit))

    def __getitem__(self, span: slice) -> list[int]:
        """Tokens of some positions, the mask where undecided."""
        return self._tokens[span]

    def masked(self) -> list[int]:
        """Undecided answer positions of the open block, ascending."""
        return [p for p in self._answer_positions() if self._tokens[p] == self._mask_id]

    def editable(self, start: int, end: int) -> dict[int, int]:
        """Decided tokens of answer positions from start to end that may change."""
        positions = range(max(start, self.prompt_length), min(end, self.limit))
        return {p: self._tokens[p] for p in positions if self._is_editable(p)}

    def find(self, token: int, start: int) -> int | None:
        """First position from ``start`` on that holds ``token`` with all before it decided."""
        for position in range(start, self.frontier):
            if self._tokens[position] == token:
                return position
        return None

    def place(self, position: int, token: int) -> None:
        """Decides a position, or decides it anew."""
        self._tokens[position] = token

    def pin(self, position: int, token: int) -> None:
        """Decides a position of the open block for good, if it is one."""
        if position in self._answer_positions():
            self._pinned.add(position)
            self.place(position, token)

    def open_next(self) -> bool:
        """Moves on to the next block; False if the open one is the last."""
        if self.end >= self.limit:
            return False
        self.open = self.end
        self._tokens += [self._mask_id] * self.block_length
        return True

    def close(self, end: int | None, filler: int) -> None:
        """Ends the last block; behind the answer's ``end``, if it has one, comes ``filler``."""
        if end is not None:
            self._tokens[end:] = [filler] * (self.end - end)
        self.open, self.closed = self.end, True

    def block_of(self, position: int) -> int:
        """Number of the block a position lies in, 0 for the answer's first."""
        return self._block(position) - self._block(self.prompt_length)

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, list[int]]]:
        """The blocks that the positions from start to end lie in, with their tokens there."""
        while start < end:
            stop = min(end, (self._block(start) + 1) * self.block_length + self._phase)
            yield self.block_of(start), self._tokens[start:stop]
            start = stop

    def _block(self, position: int) -> int:
        """Number of the block on the grid."""
        return (position - self._phase) // self.block_length

    def _answer_positions(self) -> range:
        return range(self.first, min(self.end, self.limit))

    def _is_editable(self, position: int) -> bool:
        return self._tokens[position] != self._mask_id and position not in self._pinned
