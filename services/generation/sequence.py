"""What the step loop and a sequence say to each other.

A sequence is one request's decoding state. The loop knows no paradigm: it asks
a sequence for rows, runs them with everybody else's, and hands back what the
model makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from typing import Protocol

from services.generation.sampling import Draw, Predictions
from services.generation.types import FinishReason, Job


@dataclass(frozen=True, slots=True)
class Rows:
    """Token rows that a sequence wants computed in the next forward.

    Row i is ``tokens[i]`` at position ``start + i``. It attends to the positions
    below ``reach[i]`` of its own slot, and its keys and values land at its
    position, in place of what an earlier forward left there. ``wanted`` are the
    rows whose predictions come back, ascending; ``draws`` says how each of them
    is drawn, and is empty where the likeliest token is taken. ``spread`` asks for
    their entropies and rivals as well, which are not computed otherwise.
    """

    tokens: list[int]
    start: int
    reach: list[int]
    wanted: list[int]
    draws: list[Draw] = field(default_factory=list)
    spread: bool = False

    @property
    def open_rows(self) -> int:
        """Rows from the first one asked about on: about what the forward after this one has."""
        return len(self.tokens) - self.wanted[0] if self.wanted else len(self.tokens)

    def all_draws(self) -> Many[Draw | None]:
        """One entry per wanted row, None for the likeliest token."""
        return self.draws or [None] * len(self.wanted)

    def all_spreads(self) -> Many[bool]:
        """One entry per wanted row: whether its spread is asked for."""
        return [self.spread] * len(self.wanted)


@dataclass(frozen=True, slots=True)
class Head:
    """First tokens of a prompt whose keys and values follow from themselves alone.

    Two sequences with the same head and the same ``grain``, the tokens that see each
    other, can share them. At least one token of every prompt is not of its head.
    """

    tokens: tuple[int, ...] = ()
    grain: int = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that are final, without the end token."""

    tokens: tuple[int, ...]
    block_index: int
    denoise_steps: int = 1


@dataclass(frozen=True, slots=True)
class Sketch:
    """Tokens that may still change, behind those handed over; None where undecided."""

    tokens: tuple[int | None, ...]
    block_index: int
    """Block of the first of them."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one forward settled."""

    pieces: tuple[Piece, ...] = ()
    finish: FinishReason | None = None


@dataclass(slots=True)
class Figures:
    """Counts of one sequence, kept by it."""

    forward_passes: int = 0
    generating_forwards: int = 0
    """Forwards that could settle answer tokens: all but those of prefill alone."""
    denoise_steps: int = 0
    cached_tokens: int = 0
    """Prompt tokens whose keys and values were there already."""
    blocks: int = 0
    """Blocks that were denoised."""
    forced_commits: int = 0
    """Tokens committed below the threshold because steps or time ran out."""


class Sequence(Protocol):
    """One request's decoding state; only the engine's thread touches it."""

    figures: Figures
    forwards_left: int | None
    """Forwards that there is time for, the next one included; None: any number.
    Set before each of them. Who can, settles more in each as they become few."""

    @property
    def tokens_left(self) -> int:
        """Answer tokens that may still come."""
        ...

    @property
    def head(self) -> Head:
        """What of its prompt it may share with others."""
        ...

    @property
    def cached(self) -> int:
        """Positions from the first on whose keys and values are final."""
        ...

    def skip(self, tokens: int) -> None:
        """So many tokens of the head are cached already; told before the first forward."""
        ...

    def rows(self) -> Rows:
        """What to compute next; asked once per forward."""
        ...

    def accept(self, predictions: Predictions) -> Progress:
        """Takes the predictions of the wanted rows, in their order."""
        ...

    def sketch(self) -> Sketch:
        """What the answer looks like beyond what was handed over."""
        ...

    def cut(self) -> Progress:
        """Ends here: hands over what is decided from the left, if not yet final."""
        ...

    def close(self) -> None:
        """Lets go of everything; the last call, however the sequence ended."""
        ...


class Family(Protocol):
    """How one kind of model generates."""

    def open(self, job: Job) -> Sequence:
        """Starts a sequence; raises InvalidRequest for what the kind cannot do."""
        ...
