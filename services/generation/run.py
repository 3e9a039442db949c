"""One admitted job, from its slot to its last event."""

from __future__ import annotations

import math

from services.chassis.errors import DeadlineExceeded, EngineFailure
from services.generation.claims import Claim
from services.generation.sampling import Predictions
from services.generation.sequence import Head, Piece, Progress, Rows, Sequence
from services.generation.text import Transcript
from services.generation.ticket import Ticket
from services.generation.types import Delta, Draft, Event, Finished, FinishReason, Timing, Usage


class Run:
    """A sequence with its slot, its text and its clock."""

    def __init__(
        self, ticket: Ticket, slot: int, sequence: Sequence, transcript: Transcript, now: float
    ) -> None:
        self.ticket = ticket
        self.slot = slot
        self.sequence = sequence
        self.head: Head | None = sequence.head
        """What may be kept for others; None once it was."""
        self.sound = True
        """Whether all that it wrote into its slot is known to be finite numbers."""
        self.passed_over = 0
        """Forwards in a row that it was not in."""
        self._transcript = transcript
        self._started = now
        self._prefilled: float | None = None
        self._first_output: float | None = None
        self._stalled_since: float | None = None
        self._settled = 0
        """Tokens that the sequence handed over."""
        self._drafted = ""
        """The draft that the reader holds."""

    def behind_for(self, now: float) -> float:
        """Seconds for which the reader has been too far behind; 0 if it is not."""
        if not self.ticket.stream.full:
            self._stalled_since = None
            return 0.0
        if self._stalled_since is None:
            self._stalled_since = now
        return max(now - self._stalled_since, 1e-9)

    @property
    def latest(self) -> float:
        """When its answer has to be there; without a time for it, never."""
        by = self.ticket.job.answer_by
        return math.inf if by is None else by

    def claim(self, rows: Rows) -> Claim:
        """What it asks of the next forward with these rows."""
        begun = self._prefilled is not None
        return Claim(len(rows.tokens), self.latest, begun, self.passed_over)

    @property
    def finished_head(self) -> Head | None:
        """The head, once it is in the slot for certain; given once."""
        if self.head is None or not self.sound or self.sequence.cached < len(self.head.tokens):
            return None
        head, self.head = self.head, None
        return head

    def advance(self, predictions: Predictions, now: float) -> list[Event]:
        """Takes a forward's predictions; returns what may be sent.

        Raises EngineFailure if they are not finite numbers.
        """
        if not all(p == p for p in predictions.best_confidence):
            raise EngineFailure("the model gave logits that are not finite")
        self.sound = bool(predictions.best)
        progress = self.sequence.accept(predictions)
        if self._prefilled is None and self.sequence.figures.generating_forwards:
            self._prefilled = now
        events = self._settle(progress, now)
        if self.ticket.job.drafts:
            self._draft(events)
        return events

    def cut(self, now: float) -> list[Event]:
        """Ends at the answer's time with what there is; DeadlineExceeded if that is nothing."""
        progress = self.sequence.cut()
        if not progress.pieces and not self._transcript.tokens:
            raise DeadlineExceeded("there was no time for a single token")
        return self._settle(Progress(progress.pieces, FinishReason.DEADLINE), now)

    def _settle(self, progress: Progress, now: float) -> list[Event]:
        events: list[Event] = []
        for piece in progress.pieces:
            self._settled += len(piece.tokens)
            self._write(self._transcript.push(piece.tokens), piece, events, now)
        reason = FinishReason.STOP if self._transcript.stopped else progress.finish
        if reason is not None:
            last = progress.pieces[-1] if progress.pieces else Piece((), 0)
            self._write(self._transcript.finish(), last, events, now)
            events.append(self._finished(reason, now))
        return events

    def _write(self, text: str, piece: Piece, events: list[Event], now: float) -> None:
        if text:
            events.append(Delta(text, piece.block_index, piece.denoise_steps))
            self._first_output = self._first_output or now

    def _draft(self, events: list[Event]) -> None:
        """Adds the open block as it stands, unless that is what the reader has."""
        if events:
            self._drafted = ""
        if events and isinstance(events[-1], Finished):
            return
        sketch = self.sequence.sketch()
        text = self._transcript.preview(sketch.tokens)
        if text != self._drafted:
            self._drafted = text
            events.append(Draft(text, sketch.block_index))

    def _finished(self, reason: FinishReason, now: float) -> Finished:
        job, figures = self.ticket.job, self.sequence.figures
        tokens = self._transcript.tokens
        return Finished(
            finish_reason=reason,
            usage=Usage(
                prompt_tokens=job.given,
                completion_tokens=tokens,
                thinking_tokens=self._transcript.thinking_tokens,
                denoise_steps=figures.denoise_steps,
                forward_passes=figures.forward_passes,
                tokens_per_forward=tokens / max(1, figures.generating_forwards),
                blocks=figures.blocks,
                forced_commits=figures.forced_commits,
                discarded_tokens=self._settled - tokens,
                cached_tokens=figures.cached_tokens,
            ),
            timing=self._timing(now),
            thinking=self._transcript.thinking,
            seed=job.seed,
            best_effort=reason is FinishReason.DEADLINE or figures.forced_commits > 0,
        )

    def _timing(self, now: float) -> Timing:
        arrived = self.ticket.job.arrived
        prefilled = self._prefilled or now
        return Timing(
            queue=self._started - arrived,
            prefill=prefilled - self._started,
            decode=now - prefilled,
            first_output=(self._first_output or now) - arrived,
            total=now - arrived,
        )
