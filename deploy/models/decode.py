"""Reference decoding, batch one: to choose checkpoints by, and to compare an engine with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from deploy.models.commit_rule import Rule, commits, replacements
from deploy.models.model import Cache, LanguageModel


@dataclass(frozen=True)
class Decoded:
    """New tokens (the end token included, if one came) and the forward passes they took."""

    ids: list[int]
    forwards: int


def _kept(cache: Cache, length: int) -> Cache:
    return [(k[:, :, :length], v[:, :, :length]) for k, v in cache]


@torch.inference_mode()
def decode_autoregressive(
    model: LanguageModel, prompt: list[int], eos: int, max_new: int
) -> Decoded:
    """Greedy, one token a forward."""
    past: Cache | None = None
    fresh, out, cached = prompt, list[int](), 0
    while len(out) < max_new and (not out or out[-1] != eos):
        length = len(fresh)
        at = torch.arange(cached, cached + length)
        mask = (torch.arange(cached + length) <= at[:, None])[None, None]
        hidden, past = model(torch.tensor([fresh]), at[None], mask, past)
        out.append(int(model.logits(hidden[0, -1]).argmax()))
        fresh, cached = out[-1:], cached + length
    return Decoded(out, len(out))


class BlockDecoding:
    """One diffusion sequence on the block grid from the document's start.

    `closed` tokens have their keys and values kept; `pending` are complete blocks still to be
    forwarded clean (the prompt's, then one at a time), `open_ids` the block being denoised.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompt: list[int],
        mask_token: int,
        eos: int,
        block: int,
        rule: Rule,
    ) -> None:
        self._model, self._mask, self._eos, self._block, self._rule = (
            model,
            mask_token,
            eos,
            block,
            rule,
        )
        self._prompt_length = len(prompt)
        whole = len(prompt) // block * block
        self.tokens: list[int] = []
        self.pending, self._pending_fixed = prompt[:whole], whole
        self._edits_left = 0
        self._open(prompt[whole:])
        self._cache: Cache | None = None
        self.forwards = 0
        self.finished = False
        self._before: Tensor | None = None

    def _open(self, committed: list[int]) -> None:
        self.open_ids = torch.tensor(committed + [self._mask] * (self._block - len(committed)))
        self.fixed = torch.arange(self._block) < len(committed)
        self.hidden = ~self.fixed

    def _forward(self) -> Tensor:
        """Probabilities of what follows each fresh position: pending ones, then open ones."""
        following = self.open_ids[:0] if self.ended else self.open_ids
        fresh = torch.cat((torch.tensor(self.pending, dtype=torch.long), following))
        start, length = len(self.tokens), len(fresh)
        at = torch.arange(start, start + length)
        mask = (torch.arange(start + length) // self._block <= (at // self._block)[:, None])[
            None, None
        ]
        hidden, cache = self._model(fresh[None], at[None], mask, self._cache)
        self._grown = cache
        self.forwards += 1
        return self._model.logits(hidden[0]).float().softmax(-1)

    def step(self) -> None:
        """One forward: closes the pending blocks if no edit fires, and denoises the open block."""
        shares = self._forward()
        ready = len(self.pending)
        if ready and self._edit_pending(shares[:ready]):
            return
        before = shares[ready - 1 : ready] if ready else self._before
        if ready:
            self.tokens += self.pending
            self._cache = _kept(self._grown, len(self.tokens))
            self._before = before
            self.pending = []
        if self._eos in self.tokens[self._prompt_length :]:
            self.finished = True
            return
        if before is None:
            before = torch.zeros_like(shares[:1])
        self._denoise(torch.cat((before, shares[ready:-1])))

    def _edit_pending(self, shares: Tensor) -> bool:
        """Rescores the block just closed; true if it changed and must be forwarded again."""
        if self._pending_fixed >= len(self.pending) or self._edits_left == 0:
            return False
        shown = torch.tensor(self.pending)
        confidence, best = torch.cat((shares[:1], shares[:-1])).max(-1)
        mine = torch.arange(len(shown)) >= self._pending_fixed
        wrong = replacements(confidence, best, shown, mine, self._rule.edit_threshold)
        if not wrong.any():
            return False
        self._edits_left -= 1
        self.pending = torch.where(wrong, best, shown).tolist()
        return True

    def _denoise(self, shares: Tensor) -> None:
        confidence, best = shares.max(-1)
        rule = self._rule
        wrong = replacements(
            confidence, best, self.open_ids, ~self.hidden & ~self.fixed, rule.edit_threshold
        )
        chosen = commits(
            confidence, best, self.hidden, self._eos, rule.confidence_threshold, rule.distance_decay
        )
        self.open_ids = torch.where(wrong | chosen, best, self.open_ids)
        self.hidden = self.hidden & ~chosen
        self._end_tail()
        if not self.hidden.any():
            self._close_open()

    def _end_tail(self) -> None:
        """Right of a committed end token the block is filled with end tokens."""
        ends = (~self.hidden & ~self.fixed & (self.open_ids == self._eos)).nonzero()
        if len(ends) and not self.hidden[: int(ends[0])].any():
            self.open_ids[int(ends[0]) :] = self._eos
            self.hidden[int(ends[0]) :] = False

    def _close_open(self) -> None:
        self.pending = self.open_ids.tolist()
        self._pending_fixed = int(self.fixed.sum())
        self._edits_left = 2
        self._open([])

    def answer(self) -> list[int]:
        """Final answer tokens so far, up to the first end token."""
        ids = self.tokens[self._prompt_length :]
        return ids[: ids.index(self._eos) + 1] if self._eos in ids else ids

    @property
    def ended(self) -> bool:
        """True when the block just closed holds an end token of the answer."""
        return self._eos in self.pending[self._pending_fixed :]


@torch.inference_mode()
def decode_diffusion(
    model: LanguageModel,
    prompt: list[int],
    mask_token: int,
    eos: int,
    max_new: int,
    block: int,
    rule: Rule,
) -> Decoded:
    """Greedy block diffusion; the last block too is final only after its clean forward."""
    state = BlockDecoding(model, prompt, mask_token, eos, block, rule)
    while not state.finished and len(state.tokens) < len(prompt) + max_new:
        state.step()
    return Decoded(state.answer()[:max_new], state.forwards)
