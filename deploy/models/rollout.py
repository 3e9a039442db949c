"""Training states from the model's own decoding: what a forward commits is what the next one sees.

Wrong commits stay visible, so that the model learns to replace them (LLaDA2.1's edits) and to
commit only what holds together (the confident parallel commits of the LLaDA2 line).
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from deploy.models.block_rows import BlockBatch, CleanRow, Slots, block_batch, slots_of
from deploy.models.commit_rule import Rule, commits, replacements
from deploy.models.noise import TAIL_WEIGHT, distance_weights, suffix_masks

ROW_LIFE = 7
SLOT_LIFE = 10
WRONG_WEIGHT, RIGHT_WEIGHT = 2.0, 0.1
FULLY_MASKED_SHARE = 0.6
LOOSEST, STRICTEST = 0.6, 0.95


class Rollouts:
    """Slots that decode while they train, each with its own threshold for variety."""

    def __init__(
        self,
        rows: Iterator[CleanRow],
        count: int,
        slots: int,
        block: int,
        mask_token: int,
        eos: int,
    ) -> None:
        self._stream, self._count, self._block = rows, slots, block
        self._mask_token, self._eos = mask_token, eos
        self._rows = [next(rows) for _ in range(count)]
        self._steps = 0
        self.slots = self._fresh()
        self._age = torch.zeros(count, slots, dtype=torch.long)
        self._threshold = torch.empty(count, slots, 1).uniform_(LOOSEST, STRICTEST)

    def _fresh(self) -> Slots:
        """New blocks of the present rows: fully masked, or partly decoded rightly."""
        slots = slots_of(self._rows, self._count, self._block)
        whole = torch.rand(slots.block.shape)[..., None] < FULLY_MASKED_SHARE
        slots.hidden = torch.where(
            whole, slots.answers, suffix_masks(slots.answers) & slots.answers
        )
        return slots

    def batch(self) -> BlockBatch:
        """What to forward now."""
        return block_batch(self._rows, self.slots, self._block, self._mask_token)

    def weights(self) -> Tensor:
        """Weights of the present state; a block's first token counts only while it is masked."""
        s = self.slots
        inner = torch.arange(self._block) > 0
        visible = torch.where(s.shown == s.truth, RIGHT_WEIGHT, WRONG_WEIGHT) * inner
        weights = torch.where(s.hidden, distance_weights(s.hidden), visible)
        return torch.where(s.tail, TAIL_WEIGHT * weights, weights) * s.answers

    def advance(self, confidence: Tensor, best: Tensor) -> None:
        """Commits and edits as decoding would; finished blocks make room for new ones."""
        s, rule = self.slots, Rule()
        confidence, best = confidence.view_as(s.truth), best.view_as(s.truth)
        complete = ~s.hidden.any(-1)
        edits = replacements(confidence, best, s.shown, s.answers & ~s.hidden, rule.edit_threshold)
        chosen = commits(
            confidence, best, s.hidden, self._eos, self._threshold, rule.distance_decay
        )
        s.shown = torch.where(chosen | edits, best, s.shown)
        s.hidden = s.hidden & ~chosen
        self._end_tails()
        self._age += 1
        self._replace((complete & ~edits.any(-1)) | (self._age >= SLOT_LIFE))

    def _end_tails(self) -> None:
        """Right of a committed end token there are only end tokens."""
        s = self.slots
        ends = s.answers & ~s.hidden & (s.shown == self._eos)
        tail = (ends.long().cumsum(-1) - ends.long()) > 0
        s.shown = torch.where(tail, self._eos, s.shown)
        s.hidden = s.hidden & ~tail

    def _replace(self, done: Tensor) -> None:
        """Puts new blocks where slots are done; one row in ROW_LIFE steps gets new documents."""
        self._steps += 1
        for row in range(len(self._rows)):
            if (self._steps + row * ROW_LIFE // len(self._rows)) % ROW_LIFE == 0:
                self._rows[row] = next(self._stream)
                done[row] = True
        fresh, old = self._fresh(), self.slots
        wide = done[..., None]
        self._age = self._age.masked_fill(done, 0)
        self._threshold = torch.where(
            wide, torch.empty_like(self._threshold).uniform_(LOOSEST, STRICTEST), self._threshold
        )
        self.slots = Slots(
            torch.where(done, fresh.block, old.block),
            *(
                torch.where(wide, getattr(fresh, name), getattr(old, name))
                for name in ("truth", "answers", "tail", "hidden", "shown")
            ),
        )

    def error_share(self) -> float:
        """Share of committed answer tokens that are wrong; a figure to watch."""
        s = self.slots
        committed = s.answers & ~s.hidden & ~s.tail
        return float((committed & (s.shown != s.truth)).sum() / committed.sum().clamp(min=1))
