"""Fully bidirectional masked diffusion as a sequence of the step loop.

The model sees the whole canvas in every forward: the prompt, the answer with a
mask at each position not yet decided, and the text behind the gap if there is
one. Blocks only order what is decided first (LLaDA's semi-autoregressive
decoding, Nie et al. 2025, arXiv:2502.09992).
"""

from __future__ import annotations

from services.diffusion_worker.sequence import BlockModel, BlockSequence
from services.generation.sampling import Predictions
from services.generation.sequence import Head, Piece, Progress, Rows
from services.generation.types import DenoisingPlan, FinishReason, Job


class WholeCanvasSequence(BlockSequence):
    """One request under denoising, every position seeing every other.

    Exact: each forward computes all positions. With ``keeps_prefix`` the keys and
    values left of the open block stay those of the block's first forward (prefix
    cache of Fast-dLLM, Wu et al. 2025, arXiv:2505.22618): faster, and no longer
    quite what the model says. Under logit shift the position before the block is
    computed as well, for it speaks of the block's first.
    """

    def __init__(
        self, job: Job, plan: DenoisingPlan, model: BlockModel, *, keeps_prefix: bool
    ) -> None:
        super().__init__(job, plan, model)
        self._keeps_prefix = keeps_prefix
        self._left: list[int] = []
        """Tokens left of the first question that the forward under way is asked."""
        self._kept: list[int] | None = None
        """Those whose keys and values are in the slot and may be used again."""

    @property
    def head(self) -> Head:
        """Nothing: every position sees those behind it."""
        return Head()

    def rows(self) -> Rows:
        """The canvas, or the part of it that is not kept."""
        shift, tokens = self._model.shift, self._whole()
        self._left = tokens[: self._canvas.open - shift]
        start = len(self._left) if self._left == self._kept else 0
        self._asked = self._questions(start + shift)
        return Rows(
            tokens=tokens[start:],
            start=start,
            reach=[len(tokens)] * (len(tokens) - start),
            wanted=[position - shift - start for position in self._asked],
            draws=self._draws(),
            spread=self._strategy.spread,
        )

    def accept(self, predictions: Predictions) -> Progress:
        """Keeps what was computed, where that is wanted, and settles part of the open block."""
        if self._keeps_prefix:
            self._kept = self._left
        return super().accept(predictions)

    def _finish(self, pieces: tuple[Piece, ...] = ()) -> Progress:
        """As of any answer; one that fills the place before a suffix is whole."""
        progress = super()._finish(pieces)
        return Progress(progress.pieces, FinishReason.STOP) if self._job.suffix_ids else progress

    def _whole(self) -> list[int]:
        """Everything that is seen, masks where nothing is decided."""
        canvas, limit = self._canvas, self._canvas.limit
        tokens = canvas[0 : min(canvas.end, limit)]
        masks = [self._model.mask_id] * (limit - len(tokens))
        return [*tokens, *masks, *self._job.suffix_ids]
