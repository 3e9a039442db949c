"""Block diffusion whose answer is kept to a form.

What only one token can fill is placed before the forward. After it, tokens are settled from
the frontier on for as long as the model is sure of them: with everything to the left decided,
the automaton's state is known and its word is exact. What has to be settled beyond
that, because steps or time run out, is chosen together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
        self._counts_only = plan.strategy == "static_quota"
        """Whether steps alone say how much is settled, however sure the model is."""
        self._decay = plan.distance_decay if plan.strategy == "distance_threshold" else 1.0
        self._path = Path(automaton, job.max_new_tokens)
        self._predictions: Predictions
        self._rows: dict[int, int] = {}
        """Row of each position that the forward under way is asked about."""
        self._place_forced()
        self._goes_on()

    def accept(self, predictions: Predictions) -> Progress:
        """As of any block, with the logits at hand."""
        self._predictions = predictions
        self._rows = {position: row for row, position in enumerate(self._asked)}
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
        """A run from the frontier: at least one token, and all that the model is sure of.

        Where the steps left call for more, they are chosen together.
        """
        masked = self._canvas.masked()
        block = self._canvas.block_of(self._canvas.first)
        quota = math.ceil(len(masked) / max(1, self._steps_left(masked, drawn)))
        settled, chosen = (0, 0) if self._counts_only else self._settle_sure(masked)
        if self._end is None:
            due = max(quota, settled + (not chosen))
            self._settle_due(masked[settled:due], first_is_due=not chosen)
        self._steps[block] += 1
        self.figures.denoise_steps += 1
        self.figures.blocks = len(self._steps)
        self._place_forced()

    def _settle_sure(self, masked: list[int]) -> tuple[int, int]:
        """The run: how many places it filled, and of how many tokens there was a choice."""
        draws: Sequence[Draw | None] = self._draws() or [None] * len(self._asked)
        logits = self._predictions.logits.numpy()
        chosen = 0
        for settled, position in enumerate(masked):
            token = self._path.forced()
            if token is None:
                row = self._rows[position]
                token, confidence = self._path.choose(logits[row], draws[row])
                if confidence < 1 - (1 - self._plan.confidence_threshold) * self._decay**chosen:
                    return settled, chosen
                chosen += 1
            self._settle(position, token)
            if self._end is not None:
                return settled + 1, chosen
        return len(masked), chosen

    def _settle_due(self, places: list[int], *, first_is_due: bool) -> None:
        """Fills places though the model is not sure; all but a first that is due are forced."""
        for index, token in enumerate(self._tokens_for(places)):
            free = (first_is_due and index == 0) or self._path.forced() is not None
            self.figures.forced_commits += not (free or self._counts_only)
            self._settle(places[index], token)
            if self._end is not None:
                return

    def _tokens_for(self, places: list[int]) -> Iterator[int]:
        """The jointly likeliest tokens, or one after the other where they are drawn."""
        logits, rows = self._predictions.logits.numpy(), [self._rows[place] for place in places]
        if self._job.temperature == 0 and rows:
            yield from self._path.together(logits[rows], self._model.vocabulary.eos_id)
            return
        draws = self._draws()
        for row in rows:
            yield self._path.choose(logits[row], draws[row])[0]

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
