"""Block diffusion as plainly as it can be written: every forward computes everything."""

from __future__ import annotations

from dataclasses import replace

import torch
from transformers import PreTrainedModel

from services.diffusion_worker.commit import commit, edit
from services.diffusion_worker.sequence import MAX_RECOMMITS
from services.diffusion_worker.strategy import Guess
from services.generation.sampling import uniform
from services.generation.types import Job
from tests.generation.decoding import block_causal_logits
from tests.generation.tiny import EOS, MARKS, MASK


class SlowDecoder:
    """One answer; no cache, no batch, nothing fused."""

    def __init__(
        self, model: PreTrainedModel, job: Job, *, shift: int, rescore_last: bool = False
    ) -> None:
        assert job.denoising is not None
        self.model, self.shift, self.plan = model, shift, job.denoising
        self.size = self.plan.block_length
        self.seed, self.start = job.seed, len(job.prompt_ids)
        self.limit = self.start + job.max_new_tokens
        self.tokens = list(job.prompt_ids)
        self.rescore_last = rescore_last

    def answer(self) -> list[int]:
        """The tokens before the end token."""
        for block in range(self.start // self.size, -(-self.limit // self.size)):
            self.tokens += [MASK] * ((block + 1) * self.size - len(self.tokens))
            self.edit_closed(block, MAX_RECOMMITS)
            if self.ended():
                return self.text()
            for step in range(self.plan.max_steps):
                if self.ended() or not self.masked(block):
                    break
                self.denoise(block, step)
            if self.ended():
                break
        if self.rescore_last:
            if self.ended():
                end = self.tokens.index(EOS, self.start)
                self.tokens[end:] = [EOS] * (len(self.tokens) - end)
            self.edit_closed(len(self.tokens) // self.size, 1)
        return self.text()

    def text(self) -> list[int]:
        """Answer tokens before the end token, or all of them."""
        answer = self.tokens[self.start : self.limit]
        return answer[: answer.index(EOS)] if EOS in answer else answer

    def edit_closed(self, block: int, times: int) -> None:
        """Rescores the block before, now that all of it is known."""
        first = (block - 1) * self.size + self.shift
        for _ in range(times):
            span = range(max(self.start, first), min(block * self.size, self.limit))
            edits = edit({p: self.tokens[p] for p in span}, self.guesses(), self.plan, MARKS)
            for position, token in edits.items():
                self.tokens[position] = token
            if self.ended():
                break

    def denoise(self, block: int, step: int) -> None:
        """One step on the open block."""
        guesses, masked = self.guesses(), self.masked(block)
        span = range(max(self.start, block * self.size + self.shift), len(self.tokens))
        edits = edit(
            {p: self.tokens[p] for p in span if self.tokens[p] != MASK}, guesses, self.plan, MARKS
        )
        decision = commit(
            [replace(guesses[p], luck=self.luck(block, step, p)) for p in masked],
            self.plan,
            self.plan.max_steps - step,
            EOS,
            first_is_settled=bool(self.shift) and masked[0] == block * self.size,
        )
        for i in decision.chosen:
            self.tokens[masked[i]] = guesses[masked[i]].token
        for position, token in edits.items():
            if token != EOS or not any(p < position for p in self.masked(block)):
                self.tokens[position] = token

    def luck(self, block: int, step: int, position: int) -> float:
        """The complement of the seed's number; blocks count from the answer's first."""
        return uniform(~self.seed, block - self.start // self.size, step, position)

    def masked(self, block: int) -> list[int]:
        """Undecided answer positions."""
        span = range(max(self.start, block * self.size), min(self.limit, len(self.tokens)))
        return [p for p in span if self.tokens[p] == MASK]

    def ended(self) -> bool:
        """Whether an end token has everything before it decided."""
        answer = self.tokens[self.start :]
        return EOS in answer and MASK not in answer[: answer.index(EOS)]

    def guesses(self) -> dict[int, Guess]:
        """What the model would put at each position."""
        logits = block_causal_logits(self.model, self.tokens, self.size)
        logits[:, MASK] = float("-inf")
        shares = logits.softmax(-1)
        best = shares.topk(2, -1)
        figures = zip(
            best.indices[:, 0].tolist(),
            best.values.tolist(),
            torch.special.entr(shares).sum(-1).tolist(),
            strict=True,
        )
        return {
            row + self.shift: Guess(token, p, entropy, rival)
            for row, (token, (p, rival), entropy) in enumerate(figures)
        }
