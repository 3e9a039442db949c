"""Block diffusion whose answer is kept to a form.

What only one token can fill is placed before the forward. After it, tokens are settled from
the frontier on for as long as the model is sure of them: with everything to the left decided,
the automaton's state is known and its word is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from services.diffusion_worker.sequence import BlockModel, BlockSequence
from services.diffusion_worker.strategy import Guess
from services.generation.grammar.path import Path
from services.generation.grammar.token_automaton import TokenAutomaton
from services.generation.sampling import Draw, Predictions
from services.generation.sequence import Piece, Progress
from services.generation.types import DenoisingPlan, FinishReason, Job


class GuidedSequence(BlockSequence):
    """One request under denoising within a language."""

    def __init__(
        self, job: Job, plan: DenoisingPlan, model: BlockModel, automaton: TokenAutomaton
    ) -> None:
        super().__init__(job, plan, model)
        self._edits = False
        self._decay = plan.distance_decay if plan.strategy == "distance_threshold" else 1.0
        self._path = Path(automaton, job.max_new_tokens)
        self._predictions: Predictions
        self._place_forced()
        self._goes_on()

    def accept(self, predictions: Predictions) -> Progress:
        """As of any block, with the logits at hand."""
        self._predictions = predictions
        return super().accept(predictions)

    def cut(self) -> Progress:
        """Closes the answer by the shortest way and hands it over; nothing before a forward."""
        if not self.figures.generating_forwards:
            return Progress()
        start = self._canvas.prompt_length + len(self._path)
        missing = tuple(self._path.shortest())
        block = self._canvas.block_of(start)
        decided = self._hand_over(start)
        return Progress((*decided, Piece(missing, block)) if missing else decided)

    def _denoise(self, likeliest: dict[int, Guess], drawn: dict[int, Guess]) -> None:
        """A run from the frontier: at least one token, and all that the model is sure of."""
        canvas, plan = self._canvas, self._plan
        block, masked = canvas.block_of(canvas.first), canvas.masked()
        logits = self._predictions.logits.numpy()
        draws: Sequence[Draw | None] = self._draws() or [None] * len(self._asked)
        rows = {position: row for row, position in enumerate(self._asked)}
        quota = math.ceil(len(masked) / max(1, self._steps_left(masked, drawn)))
        chosen = 0
        for settled, position in enumerate(masked):
            token = self._path.forced()
            if token is None:
                row = rows[position]
                token, confidence = self._path.choose(logits[row], draws[row])
                bar = 1 - (1 - plan.confidence_threshold) * self._decay**chosen
                if confidence < bar and chosen:
                    if settled >= quota:
                        break
                    self.figures.forced_commits += 1
                chosen += 1
            self._settle(position, token)
            if self._end is not None:
                break
        self._steps[block] += 1
        self.figures.denoise_steps += 1
        self.figures.blocks = len(self._steps)
        self._place_forced()

    def _goes_on(self) -> bool:
        """Opens blocks for as long as there is only one way to fill them."""
        while super()._goes_on():
            if not self._place_forced():
                return True
        return False

    def _place_forced(self) -> bool:
        """Fills the open block as far as only one token may come; whether it filled any."""
        placed = False
        for position in self._canvas.masked():
            token = self._path.forced()
            if token is None or self._end is not None:
                break
            self._settle(position, token)
            placed = True
        return placed

    def _settle(self, position: int, token: int) -> None:
        self._path.take(token)
        self._canvas.place(position, token)
        if token == self._model.vocabulary.eos_id:
            self._end = position

    def _finish(self, pieces: tuple[Piece, ...] = ()) -> Progress:
        """As of any answer; one that fills its last token is whole as well."""
        progress = super()._finish(pieces)
        return Progress(progress.pieces, FinishReason.STOP) if self._path.whole else progress
