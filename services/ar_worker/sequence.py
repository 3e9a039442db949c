"""Autoregressive generation as a sequence of the step loop: block length one.

An answer that is kept to a form skips the forwards whose token is certain
(jump-forward decoding, Zheng et al., SGLang, 2024).
"""

from __future__ import annotations

from services.generation.grammar.path import Path
from services.generation.sampling import Draw, Predictions, uniform
from services.generation.sequence import Figures, Head, Piece, Progress, Rows, Sketch
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
    """One request, one forward for each token that is not certain once its prompt is computed."""

    def __init__(self, job: Job, family: NextToken) -> None:
        self.figures = Figures()
        self.forwards_left: int | None = None
        self._job = job
        self._family = family
        self._path = Path(job.automaton, job.max_new_tokens) if job.automaton else None
        self.cached = 0
        self._settled: list[int] = []
        """The answer so far."""
        self._sent = 0
        """Tokens of it that were handed over."""
        self._finish: FinishReason | None = None
        self._pending = list(job.prompt_ids)
        """Tokens whose keys and values are still to be computed."""
        self._reasoning = Reasoning(
            family.vocabulary, inside=job.thinking, limit=job.max_thinking_tokens
        )
        self._settle_certain()

    @property
    def tokens_left(self) -> int:
        """Answer tokens that may still come."""
        return self._job.max_new_tokens - len(self._settled)

    @property
    def head(self) -> Head:
        """All but the prompt's last token, which speaks of the answer's first."""
        return Head(self._job.prompt_ids[:-1])

    def skip(self, tokens: int) -> None:
        """Goes on behind them."""
        self.cached = self.figures.cached_tokens = tokens
        self._pending = self._pending[tokens:]

    def rows(self) -> Rows:
        """A chunk of the prompt, or the tokens settled since the last forward."""
        tokens = self._pending[: self._family.prefill_chunk]
        last = len(tokens) == len(self._pending)
        return Rows(
            tokens=tokens,
            start=self.cached,
            reach=list(range(self.cached + 1, self.cached + len(tokens) + 1)),
            wanted=[len(tokens) - 1] if last else [],
            draws=self._draws() if last else [],
        )

    def accept(self, predictions: Predictions) -> Progress:
        """Takes the next token, if the forward reached the prompt's end, and those that follow."""
        self.figures.forward_passes += 1
        computed = min(len(self._pending), self._family.prefill_chunk)
        draws = self._draws()
        self.cached += computed
        self._pending = self._pending[computed:]
        if self._pending:
            return Progress()
        self.figures.generating_forwards += 1
        if self._finish is None:
            self._settle(self._choose(predictions, draws[0] if draws else None))
            self._settle_certain()
        return Progress(self._hand_over(), self._finish)

    def sketch(self) -> Sketch:
        """Nothing: what is settled has been handed over."""
        return Sketch((), self._sent)

    def cut(self) -> Progress:
        """All but the shortest end of a form has been handed over already."""
        if self._path is None or not self.figures.generating_forwards:
            return Progress()
        self._settled += self._path.shortest()
        return Progress(self._hand_over())

    def close(self) -> None:
        """Nothing to let go of: its slot is the loop's."""

    def _draws(self) -> list[Draw]:
        job = self._job
        if job.temperature == 0:
            return []
        luck = uniform(job.seed, len(self._settled), 0, self.cached + len(self._pending))
        return [Draw(job.temperature, job.top_p, job.top_k, luck)]

    def _choose(self, predictions: Predictions, draw: Draw | None) -> int:
        """The model's token, or the mark that ends reasoning when that has to end."""
        close_id = self._family.vocabulary.think_close_id
        if self._reasoning.left == 0 and close_id is not None:
            return close_id
        if self._path is not None:
            return self._path.choose(predictions.logits[0].numpy(), draw)[0]
        return predictions.drawn[0]

    def _settle(self, token: int) -> None:
        """Adds the answer's next token, or ends it."""
        if self._path is not None:
            self._path.take(token)
        if token == self._family.vocabulary.eos_id:
            self._finish = FinishReason.STOP
            return
        self._reasoning.observe(token)
        self._pending.append(token)
        self._settled.append(token)
        if not self.tokens_left:
            whole = self._path is not None and self._path.whole
            self._finish = FinishReason.STOP if whole else FinishReason.LENGTH

    def _settle_certain(self) -> None:
        """Adds the tokens that a form leaves no choice about."""
        while self._path is not None and self._finish is None:
            token = self._path.forced()
            if token is None:
                return
            self._settle(token)

    def _hand_over(self) -> tuple[Piece, ...]:
        tokens, first = tuple(self._settled[self._sent :]), self._sent
        self._sent = len(self._settled)
        return (Piece(tokens, first),) if tokens else ()
