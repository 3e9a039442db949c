"""Block diffusion as a sequence of the step loop.

The open block is denoised with attention over all of itself and everything
before it. Two things share a forward wherever they can: the prompt's prefill
with the first denoising step, and the forward that writes a finished block's
keys and values with the first step of the next block. That is exact, because a
row never sees beyond its own block (Fast-dLLM v2, SDAR).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import repeat

from services.diffusion_worker.canvas import Canvas
from services.diffusion_worker.commit import commit, edit
from services.diffusion_worker.strategy import STRATEGIES, Guess
from services.generation.sampling import Draw, Predictions, uniform
from services.generation.sequence import Figures, Head, Piece, Progress, Rows, Sketch
from services.generation.thinking import Reasoning
from services.generation.types import DenoisingPlan, FinishReason, Job
from services.generation.vocabulary import Vocabulary

MAX_RECOMMITS = 2
"""Times that edits may send a finished block through its commit forward again."""


@dataclass(frozen=True, slots=True)
class BlockModel:
    """What a sequence has to know of the model it runs on; see BlockDiffusion."""

    vocabulary: Vocabulary
    mask_id: int
    shift: int
    """1 where the logits of a position speak of the next token, 0 where of its own."""
    prefill_chunk: int
    rescore_last: bool
    sees_right: bool = False
    """Whether a position sees those right of its block; see MaskedDiffusion."""


class BlockSequence:
    """One request under denoising."""

    def __init__(self, job: Job, plan: DenoisingPlan, model: BlockModel) -> None:
        self.figures = Figures()
        self.forwards_left: int | None = None
        self._job = job
        self._plan = plan
        self._strategy = STRATEGIES[plan.strategy]
        self._model = model
        self._canvas = Canvas(
            job.prompt_ids,
            job.max_new_tokens,
            plan.block_length,
            model.mask_id,
            from_answer=model.sees_right,
        )
        self.cached = 0
        """Positions whose keys and values are final; the start of a block."""
        self._sent = len(job.prompt_ids)
        """Positions whose tokens are final and handed over."""
        self._asked: list[int] = []
        """Positions that the forward under way is asked about."""
        self._computed = 0
        """One past the last position of that forward."""
        self._prefilling = False
        """Whether it computes a part of the prompt and nothing else."""
        self._steps: dict[int, int] = defaultdict(int)
        """Denoising steps of each of the answer's blocks."""
        self._recommits = 0
        self._end: int | None = None
        """Position of the end token, once everything before it is decided."""
        self._edits = job.temperature == 0 and plan.edit_threshold < 1
        """Whether decided tokens are rescored: where tokens are drawn, the draw stands."""
        self._pin_end_of_reasoning()

    @property
    def tokens_left(self) -> int:
        """Answer tokens that may still come."""
        return self._canvas.limit - self._sent

    @property
    def head(self) -> Head:
        """The prompt's blocks before the first that is asked about."""
        size = self._plan.block_length
        blocks = self._canvas.prompt_length // size - self._model.shift
        return Head(self._job.prompt_ids[: max(0, blocks) * size], size)

    def skip(self, tokens: int) -> None:
        """Goes on behind them."""
        self.cached = self.figures.cached_tokens = tokens

    def rows(self) -> Rows:
        """A chunk of the prompt, or the open block behind what is not cached yet."""
        size, shift = self._plan.block_length, self._model.shift
        start, end = self.cached, self._canvas.end
        chunk = max(size, self._model.prefill_chunk // size * size)
        self._prefilling = self._canvas.open - start > chunk
        if self._prefilling:
            end = start + chunk
        self._asked = [] if self._prefilling else self._questions(start + shift)
        self._computed = end
        return Rows(
            tokens=self._canvas[start:end],
            start=start,
            reach=[stop for stop in range(start + size, end + size, size) for _ in range(size)],
            wanted=[position - shift - start for position in self._asked],
            draws=self._draws(),
            spread=self._strategy.spread,
        )

    def accept(self, predictions: Predictions) -> Progress:
        """Keeps or edits the finished block, then settles part of the open one."""
        self.figures.forward_passes += 1
        if self._prefilling:
            self.cached = self._computed
            return Progress()
        self.figures.generating_forwards += 1
        likeliest = self._likeliest(predictions)
        edited = self._edit_closed(likeliest)
        if self._canvas.closed or self._end is not None:
            return self._finish()
        if edited:
            return Progress()
        self.cached = self._canvas.open
        self._denoise(likeliest, self._drawn(predictions))
        return self._progress()

    def sketch(self) -> Sketch:
        """The open block, behind the one that still waits for its commit forward."""
        canvas, mask_id = self._canvas, self._model.mask_id
        end = min(canvas.end, canvas.limit) if self._end is None else self._end
        tokens = canvas[self._sent : end]
        return Sketch(
            tuple(None if token == mask_id else token for token in tokens),
            canvas.block_of(self._sent),
        )

    def cut(self) -> Progress:
        """Hands over what is decided from the left, final or not."""
        return Progress(self._hand_over(next(iter(self._canvas.masked()), self._canvas.limit)))

    def close(self) -> None:
        """Nothing to let go of: its slot is the loop's."""

    def _questions(self, first: int) -> list[int]:
        """Positions from ``first`` on to ask about: masked ones, and those that may be edited."""
        positions = self._canvas.masked()
        if self._edits:
            positions += self._canvas.editable(self._sent, self._canvas.end)
        return sorted(position for position in positions if position >= first)

    def _draws(self) -> list[Draw]:
        """This step's luck at each position asked about; none at temperature 0."""
        job = self._job
        if job.temperature == 0:
            return []
        return [Draw(job.temperature, job.top_p, job.top_k, luck) for luck in self._luck(job.seed)]

    def _luck(self, seed: int) -> list[float]:
        """Random numbers of this step for the positions asked about."""
        block = self._canvas.block_of(self._canvas.first)
        step = self._steps[block]
        return [uniform(seed, block, step, position) for position in self._asked]

    def _likeliest(self, predictions: Predictions) -> dict[int, Guess]:
        guesses = map(Guess, predictions.best, predictions.best_confidence)
        return dict(zip(self._asked, guesses, strict=True))

    def _drawn(self, predictions: Predictions) -> dict[int, Guess]:
        """Guesses with all that the strategy looks at.

        Their luck is that of the seed's complement, which is no request's own
        seed: it has nothing to do with the luck of the draws.
        """
        lucky = self._strategy.luck
        guesses = map(
            Guess,
            predictions.drawn,
            predictions.drawn_confidence,
            predictions.entropy,
            predictions.rival,
            self._luck(~self._job.seed) if lucky else repeat(0.0),
        )
        return dict(zip(self._asked, guesses, strict=True))

    def _edit_closed(self, likeliest: dict[int, Guess]) -> bool:
        """Edits what is decided before the open block; True if it has to be computed again.

        Nothing is where time is short: an edit costs a forward.
        """
        hurried = self.forwards_left is not None and self.forwards_left < self._plan.max_steps
        if not self._edits or hurried or self._recommits >= MAX_RECOMMITS:
            return False
        closed = self._canvas.editable(self._sent, self._canvas.open)
        edits = edit(closed, likeliest, self._plan, self._model.vocabulary.marks)
        for position, token in edits.items():
            self._canvas.place(position, token)
        if edits:
            self._end = self._canvas.find(self._model.vocabulary.eos_id, self._sent)
            self._recommits += 1
        return bool(edits)

    def _denoise(self, likeliest: dict[int, Guess], drawn: dict[int, Guess]) -> None:
        """One step on the open block."""
        canvas, eos_id = self._canvas, self._model.vocabulary.eos_id
        block, masked = canvas.block_of(canvas.first), canvas.masked()
        committed = canvas.editable(canvas.open, canvas.end) if self._edits else {}
        edits = edit(committed, likeliest, self._plan, self._model.vocabulary.marks)
        guesses = [drawn[position] for position in masked]
        decision = commit(
            guesses,
            self._plan,
            self._steps_left(masked, drawn),
            eos_id,
            first_is_settled=not self._model.sees_right
            and masked[0] - self._model.shift < canvas.open,
        )
        for index in decision.chosen:
            canvas.place(masked[index], guesses[index].token)
        for position, token in edits.items():
            if token != eos_id or position < canvas.frontier:
                canvas.place(position, token)
        self._end = canvas.find(eos_id, canvas.first)
        self._steps[block] += 1
        self.figures.denoise_steps += 1
        self.figures.blocks = len(self._steps)
        self.figures.forced_commits += decision.forced

    def _steps_left(self, masked: list[int], guesses: dict[int, Guess]) -> int:
        """Steps that the open block may still take, this one included.

        Where time is short the block gets its share of the forwards that are left:
        all of them if the answer seems to end in it, else another block is
        reckoned with.
        """
        canvas, eos_id = self._canvas, self._model.vocabulary.eos_id
        steps = self._plan.max_steps - self._steps[canvas.block_of(canvas.first)]
        if self.forwards_left is None:
            return steps
        ends = [n for n, position in enumerate(masked, 1) if guesses[position].token == eos_id]
        needed = ends[0] if ends else len(masked)
        more = 0 if ends else min(canvas.block_length, max(0, canvas.limit - canvas.end))
        return min(steps, max(1, self.forwards_left * needed // (needed + more)))

    def _progress(self) -> Progress:
        """Hands over what is final by now; ends the answer when it is time."""
        pieces = self._hand_over(self._canvas.open)
        if self._goes_on():
            return Progress(pieces)
        if not (self._model.rescore_last and self._edits):
            return self._finish(pieces)
        self._recommits = 0
        self._canvas.close(self._end, self._model.vocabulary.eos_id)
        return Progress(pieces)

    def _goes_on(self) -> bool:
        """Opens the next block where the open one is decided; False at the answer's end."""
        while self._end is None and not self._canvas.masked():
            if not self._canvas.open_next():
                return False
            self._recommits = 0
            self._pin_end_of_reasoning()
        return self._end is None

    def _finish(self, pieces: tuple[Piece, ...] = ()) -> Progress:
        """Hands over the rest, up to the end token if there is one."""
        if self._end is not None:
            return Progress(pieces + self._hand_over(self._end), FinishReason.STOP)
        return Progress(pieces + self._hand_over(self._canvas.limit), FinishReason.LENGTH)

    def _hand_over(self, end: int) -> tuple[Piece, ...]:
        """The tokens before ``end`` that were not handed over yet, block by block."""
        start, self._sent = self._sent, max(self._sent, end)
        return tuple(
            Piece(tuple(tokens), block, self._steps[block])
            for block, tokens in self._canvas.pieces(start, end)
        )

    def _pin_end_of_reasoning(self) -> None:
        """Closes the reasoning within the open block if its limit falls there."""
        canvas, vocabulary, job = self._canvas, self._model.vocabulary, self._job
        if job.max_thinking_tokens is None or vocabulary.think_close_id is None:
            return
        reasoning = Reasoning(vocabulary, inside=job.thinking, limit=job.max_thinking_tokens)
        for token in canvas[canvas.prompt_length : canvas.first]:
            reasoning.observe(token)
        if reasoning.left is not None:
            canvas.pin(canvas.first + reasoning.left, vocabulary.think_close_id)
