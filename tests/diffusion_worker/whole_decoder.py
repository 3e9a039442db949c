"""Bidirectional masked diffusion as plainly as it can be written, in transformers' own forward."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from services.diffusion_worker.commit import commit, edit
from services.diffusion_worker.sequence import MAX_RECOMMITS
from services.diffusion_worker.strategy import Guess
from services.generation.types import Job
from tests.generation.tiny import EOS, MARKS, MASK


class WholeDecoder:
    """One answer. Every forward computes everything, or with ``keeps_prefix`` what is not kept."""

    def __init__(
        self, model: PreTrainedModel, job: Job, *, shift: int, keeps_prefix: bool = False
    ) -> None:
        assert job.denoising is not None
        self.model, self.shift, self.plan = model, shift, job.denoising
        self.start = len(job.prompt_ids)
        self.limit = self.start + job.max_new_tokens
        self.canvas = [*job.prompt_ids, *[MASK] * job.max_new_tokens, *job.suffix_ids]
        self.keeps_prefix = keeps_prefix
        self.left: list[int] | None = None
        self.cache = DynamicCache()

    def answer(self) -> list[int]:
        """The tokens before the end token."""
        size = self.plan.block_length
        for first in range(self.start, self.limit, size):
            self.rescore(range(max(self.start, first - size), first), first)
            block = range(first, min(first + size, self.limit))
            for step in range(self.plan.max_steps):
                if self.ended() or not self.masked(block):
                    break
                self.denoise(block, step)
            if self.ended():
                break
        answer = self.canvas[self.start : self.limit]
        return answer[: answer.index(EOS)] if EOS in answer else answer

    def rescore(self, closed: range, first: int) -> None:
        """Edits the block before ``first``, now that all of it is known."""
        for _ in range(MAX_RECOMMITS if closed else 0):
            edits = edit({p: self.canvas[p] for p in closed}, self.guesses(first), self.plan, MARKS)
            for position, token in edits.items():
                self.canvas[position] = token
            if not edits or self.ended():
                break

    def denoise(self, block: range, step: int) -> None:
        """One step on the open block."""
        guesses, masked = self.guesses(block.start), self.masked(block)
        decided = {p: self.canvas[p] for p in block if self.canvas[p] != MASK}
        edits = edit(decided, guesses, self.plan, MARKS)
        steps_left = self.plan.max_steps - step
        for i in commit([guesses[p] for p in masked], self.plan, steps_left, EOS).chosen:
            self.canvas[masked[i]] = guesses[masked[i]].token
        for position, token in edits.items():
            if token != EOS or not any(p < position for p in self.masked(block)):
                self.canvas[position] = token

    def masked(self, block: range) -> list[int]:
        """Undecided positions."""
        return [p for p in block if self.canvas[p] == MASK]

    def ended(self) -> bool:
        """Whether an end token has everything before it decided."""
        answer = self.canvas[self.start : self.limit]
        return EOS in answer and MASK not in answer[: answer.index(EOS)]

    def guesses(self, first: int) -> dict[int, Guess]:
        """What the model would put at each position that is computed."""
        kept = first - self.shift
        if not self.keeps_prefix:
            start, logits = 0, self.logits(0, DynamicCache())
        elif self.canvas[:kept] == self.left:
            start, logits = kept, self.logits(kept, self.cache)
        else:
            self.left, self.cache = self.canvas[:kept], DynamicCache()
            start, logits = 0, self.logits(0, self.cache)
        self.cache.crop(kept - len(self.canvas))
        logits[:, MASK] = float("-inf")
        best = logits.softmax(-1).max(-1)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return {start + row + self.shift: Guess(*pair) for row, pair in enumerate(pairs)}

    @torch.no_grad()
    def logits(self, start: int, cache: DynamicCache) -> Tensor:
        """Logits from ``start`` on, every row seeing what is cached and all of its own."""
        rows = len(self.canvas) - start
        logits: Tensor = self.model(
            input_ids=torch.tensor([self.canvas[start:]]),
            position_ids=torch.arange(start, len(self.canvas))[None],
            attention_mask=torch.zeros(1, 1, rows, len(self.canvas)),
            past_key_values=cache,
            use_cache=True,
        ).logits[0]
        return logits
