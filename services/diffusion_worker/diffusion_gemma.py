"""transformers' diffusion_gemma, run by its own generate.

The model owns its loop: canvas after canvas, each encoded once and denoised in
steps, with a sampler, a schedule of temperatures and a rule for when a canvas is
good enough. The step loop gives each request one forward of it at a time.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSamplerConfig,
)

from services.chassis.errors import InvalidRequest
from services.diffusion_worker.observed import CanvasStreamer, StepCap
from services.diffusion_worker.randomness import OwnRandomness
from services.diffusion_worker.turns import Turns
from services.generation.sampling import Predictions
from services.generation.sequence import Figures, Head, Piece, Progress, Rows, Sketch
from services.generation.types import DenoisingPlan, FinishReason, Job
from services.generation.vocabulary import Vocabulary

_NO_ROWS = Rows(tokens=[], start=0, reach=[], wanted=[])
LEAST_BOUND = sys.float_info.min
"""Stands for a bound of 0, which the sampler does not take; equal to it in float32."""


class DiffusionGemma:
    """The model with its own generate; answers end at the card's end token or at its own ones."""

    def __init__(self, vocabulary: Vocabulary, module: PreTrainedModel) -> None:
        self.module: Any = module
        own = self.module.generation_config.eos_token_id
        own_ids = own if isinstance(own, list) else [own]
        self.end_ids = frozenset({vocabulary.eos_id, *own_ids} - {None})
        for part in (self.module.model.encoder, self.module.model.decoder):
            part.register_forward_pre_hook(_before_forward)

    def open(self, job: Job) -> CanvasSequence:
        """Starts a sequence; raises InvalidRequest for what generate does not offer."""
        if job.denoising is None or job.denoising.strategy != "entropy_bound":
            raise InvalidRequest.field("diffusion.strategy", "must be entropy_bound")
        if job.automaton is not None or job.suffix_ids:
            raise InvalidRequest.field("constraint", "is not supported by this model")
        return CanvasSequence(job, job.denoising, self)


class CanvasSequence:
    """One request: one call of generate, one forward a turn, a piece of the answer a canvas.

    Given the same weights, the tokens are those of generate called alone after
    ``torch.manual_seed(job.seed)``, whoever runs beside it.
    """

    def __init__(self, job: Job, plan: DenoisingPlan, family: DiffusionGemma) -> None:
        self.figures = Figures()
        self.forwards_left: int | None = None
        self._job = job
        self._plan = plan
        self._family = family
        self._sent = 0
        bar = EntropyBoundSamplerConfig(max(plan.entropy_bound, LEAST_BOUND))
        self._bar = bar
        self._cap = StepCap(bar)
        self._streamer = CanvasStreamer()
        self._randomness = OwnRandomness(job.seed, family.module.device)
        self._turns = _ForwardTurns(self._generate)

    @property
    def tokens_left(self) -> int:
        """Answer tokens that may still come."""
        return self._job.max_new_tokens - self._sent

    @property
    def head(self) -> Head:
        """Nothing: its cache is generate's own."""
        return Head()

    @property
    def cached(self) -> int:
        """Nothing in the slot."""
        return 0

    def skip(self, tokens: int) -> None:
        """Nothing was shared."""

    def rows(self) -> Rows:
        """None: generate runs its own forwards."""
        return _NO_ROWS

    def accept(self, predictions: Predictions) -> Progress:
        """Lets generate run its next forward; hands over the canvas that this made final."""
        with self._randomness.in_force():
            self._turns.take()
        figures, steps = self.figures, self._streamer.steps
        figures.forward_passes += 1
        figures.denoise_steps = figures.generating_forwards = sum(steps)
        figures.blocks = len(steps)
        canvas = self._streamer.take()
        return self._settle(canvas) if canvas else Progress()

    def sketch(self) -> Sketch:
        """The open canvas as its latest step left it: every place of it is taken."""
        draft = self._streamer.draft
        return Sketch(self._answer_of(draft), len(self._streamer.steps) - bool(draft))

    def cut(self) -> Progress:
        """Hands over the open canvas as it stands, every token of it as a forced one."""
        tokens = self._answer_of(self._streamer.draft)
        self.figures.forced_commits += len(tokens)
        return Progress(self._hand_over(tokens))

    def close(self) -> None:
        """Ends generate where it is."""
        self._turns.close()

    def _generate(self) -> None:
        """The whole call; runs in a thread of its own, turn by turn."""
        job, module = self._job, self._family.module
        module.generate(
            torch.tensor([job.prompt_ids], device=module.device),
            streamer=self._streamer,
            logits_processor=self._cap,
            sampler_config=self._bar,
            max_denoising_steps=self._steps(),
            max_new_tokens=job.max_new_tokens,
            max_length=None,
            eos_token_id=sorted(self._family.end_ids),
            cache_implementation="dynamic",
        )

    def _steps(self) -> int:
        """Most steps of a canvas: fewer where time is short, with room for one canvas more."""
        if self.forwards_left is None:
            return self._plan.max_steps
        canvases = min(2, -(-self._job.max_new_tokens // self._plan.block_length))
        return max(1, min(self._plan.max_steps, self.forwards_left // canvases - 1))

    def _settle(self, canvas: list[int]) -> Progress:
        tokens = self._answer_of(canvas)
        self.figures.forced_commits += sum(self._cap.missed[: len(tokens)])
        ended = len(tokens) < min(len(canvas), self.tokens_left)
        pieces = self._hand_over(tokens)
        if ended:
            return Progress(pieces, FinishReason.STOP)
        return Progress(pieces, None if self.tokens_left else FinishReason.LENGTH)

    def _answer_of(self, canvas: list[int]) -> tuple[int, ...]:
        """The canvas up to its first end token, within what may still come."""
        ends = (i for i, token in enumerate(canvas) if token in self._family.end_ids)
        return tuple(canvas[: min(next(ends, len(canvas)), self.tokens_left)])

    def _hand_over(self, tokens: tuple[int, ...]) -> tuple[Piece, ...]:
        self._sent += len(tokens)
        steps = self._streamer.steps
        return (Piece(tokens, len(steps) - 1, steps[-1]),) if tokens else ()


class _ForwardTurns(Turns):
    """Turns of one forward each, with all that generate does until the next one."""

    _first = True

    def before_forward(self) -> None:
        """Ends the turn where it had a forward already."""
        if not self._first:
            self.pause()
        self._first = False


def _before_forward(_module: Any, _inputs: Any) -> None:
    """Called before each forward of encoder and decoder, in the thread that runs it."""
    thread = threading.current_thread()
    if isinstance(thread, _ForwardTurns):
        thread.before_forward()
