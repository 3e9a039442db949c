"""Autoregressive generation as a sequence of the step loop: block length one."""

from __future__ import annotations

from services.generation.sampling import Draw, Predictions, uniform
from services.generation.sequence import Figures, Piece, Progress, Rows
from services.generation.thinking import Reasoning
from services.generation.types import FinishReason, Job
from services.generation.vocabulary import Vocabulary


class NextToken:
    """One token after another.

    Prompts longer than ``prefill_chunk`` tokens take several forwards.
    """

    def __init__(self, vocabulary: Vocabulary, *, prefill_chunk: int = 256) -> None:
        self.vocabulary = vocabulary
        self.prefill_chunk = prefill_chunk

    def open(self, job: Job) -> TokenSequence:
        """Starts a sequence."""
        return TokenSequence(job, self)


class TokenSequence:
    """One request, one token a forward once its prompt is computed."""

    def __init__(self, job: Job, family: NextToken) -> None:
        self.figures = Figures()
        self._job = job
        self._family = family
        self._pending = list(job.prompt_ids)
        """Tokens whose keys and values are still to be computed."""
        self._cached = 0
        self._generated = 0
        self._reasoning = Reasoning(
            family.vocabulary, inside=job.thinking, limit=job.max_thinking_tokens
        )

    @property
    def tokens_left(self) -> int:
        """Answer tokens that may still come."""
        return self._job.max_new_tokens - self._generated

    def rows(self) -> Rows:
        """A chunk of the prompt, or the last token."""
        tokens = self._pending[: self._family.prefill_chunk]
        last = len(tokens) == len(self._pending)
        return Rows(
            tokens=tokens,
            start=self._cached,
            reach=list(range(self._cached + 1, self._cached + len(tokens) + 1)),
            wanted=[len(tokens) - 1] if last else [],
            draws=self._draws() if last else [],
        )

    def accept(self, predictions: Predictions) -> Progress:
        """Takes the next token, if the forward reached the prompt's end."""
        self.figures.forward_passes += 1
        computed = min(len(self._pending), self._family.prefill_chunk)
        self._cached += computed
        self._pending = self._pending[computed:]
        if self._pending:
            return Progress()
        self.figures.generating_forwards += 1
        return self._append(self._choose(predictions))

    def cut(self) -> Progress:
        """Every token has been handed over already."""
        return Progress()

    def _draws(self) -> list[Draw]:
        job = self._job
        if job.temperature == 0:
            return []
        luck = uniform(job.seed, self._generated, 0, self._cached + len(self._pending))
        return [Draw(job.temperature, job.top_p, job.top_k, luck)]

    def _choose(self, predictions: Predictions) -> int:
        """The model's token, or the mark that ends reasoning when that has to end."""
        close_id = self._family.vocabulary.think_close_id
        if self._reasoning.left == 0 and close_id is not None:
            return close_id
        return predictions.drawn[0]

    def _append(self, token: int) -> Progress:
        if token == self._family.vocabulary.eos_id:
            return Progress(finish=FinishReason.STOP)
        self._reasoning.observe(token)
        self._pending = [token]
        piece = Piece((token,), self._generated)
        self._generated += 1
        return Progress((piece,), None if self.tokens_left else FinishReason.LENGTH)
