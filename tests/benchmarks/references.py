"""Published decoders of block diffusion, written over transformers' own model.

They decode greedily and by the demo model's convention, without which its weights give
nothing: blocks lie on the grid of the document, a row sees its own block and all before
it, and its logits speak of the next token. The first token of a block is thus foretold by
the last row of the block before; no later step can better it, so it is committed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel


@dataclass(frozen=True, slots=True)
class Reference:
    """A model, and what its decoders have to know of it."""

    model: PreTrainedModel
    size: int
    """Tokens of a block."""
    mask_id: int
    eos_id: int

    @torch.inference_mode()
    def cached(
        self, prompts: Sequence[Sequence[int]], most: int, *, threshold: float = 0.9
    ) -> list[list[int]]:
        """Answers of up to ``most`` tokens, decoded with a block cache in one static batch.

        SDAR's block_diffusion_generate with remasking "low_confidence_dynamic" (JetLM/SDAR,
        generate.py), there for batch 1: each step computes the open block alone and drops its
        keys and values again; what exceeds the threshold is committed, or else the likeliest;
        one more forward stores those of the finished block, of the last one too. A batch moves
        on together, block by block.
        """
        canvas, cache = StaticBatch(prompts, self.size, self.mask_id), DynamicCache()
        before = torch.zeros(len(prompts), 1, self.model.config.vocab_size)
        if canvas.open:
            before = self._logits(canvas, canvas.view(0, canvas.open), cache)
        while True:
            view = canvas.view(canvas.open, canvas.end)
            while (masked := canvas.masked()).any():
                logits = self._logits(canvas, view, cache, self.size)
                cache.crop(-self.size)
                confidence, best = self._guess(torch.cat((before, logits[:, :-1]), 1))
                canvas.place(above(confidence, masked, threshold), best)
            before = self._logits(canvas, view, cache)
            if canvas.ended(self.eos_id, most):
                return canvas.answers(self.eos_id, most)
            canvas.open_next()

    @torch.inference_mode()
    def uncached(
        self, prompts: Sequence[Sequence[int]], most: int, *, steps: int = 16
    ) -> list[list[int]]:
        """Answers of up to ``most`` tokens, every forward computing the whole static batch.

        LLaDA's semi-autoregressive low-confidence remasking (ML-GSAI/LLaDA, generate.py): a
        fixed number of steps for each block, each committing its share, the likeliest first.
        Two things spare it work that it does there: masks behind the open block, which no row
        sees in this model, are not computed, and a batch ends once all its answers have.
        """
        canvas = StaticBatch(prompts, self.size, self.mask_id)
        while True:
            view = canvas.view(0, canvas.end)
            for left in range(steps, 0, -1):
                masked = canvas.masked()
                if not masked.any():
                    break
                logits = self._logits(canvas, view, None, self.size + 1)[:, :-1]
                if not canvas.open:
                    logits = torch.nn.functional.pad(logits, (0, 0, 1, 0))
                confidence, best = self._guess(logits)
                share = masked.sum(-1, keepdim=True).add(left - 1) // left
                canvas.place(likeliest(confidence, masked, share), best)
            if canvas.ended(self.eos_id, most):
                return canvas.answers(self.eos_id, most)
            canvas.open_next()

    def _logits(
        self, canvas: StaticBatch, view: View, cache: DynamicCache | None, rows: int = 1
    ) -> Tensor:
        """Logits of the view's last rows, float32."""
        logits: Tensor = self.model(
            input_ids=canvas.tokens[:, view.span],
            position_ids=view.positions,
            attention_mask=view.visible,
            past_key_values=cache,
            use_cache=cache is not None,
            logits_to_keep=rows,
        ).logits
        return logits.float()

    def _guess(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Probability of the likeliest token at each position, and the token; never the mask."""
        logits[..., self.mask_id] = -torch.inf
        confidence, best = logits.softmax(-1).max(-1)
        confidence[:, 0] = torch.inf
        return confidence, best


@dataclass(frozen=True, slots=True)
class View:
    """A stretch of columns of a batch as a forward sees it."""

    span: slice
    positions: Tensor
    """[batch, rows], in the document."""
    visible: Tensor
    """[batch, 1, rows, columns up to the span's end], bool."""


class StaticBatch:
    """Documents padded on the left by whole blocks, so that their open blocks line up."""

    def __init__(self, prompts: Sequence[Sequence[int]], size: int, mask_id: int) -> None:
        self.open = max(len(prompt) for prompt in prompts) // size * size
        """Column at which the open block starts."""
        self._size, self._mask_id = size, mask_id
        pads = [self.open - len(prompt) // size * size for prompt in prompts]
        self._pads = torch.tensor(pads)[:, None]
        self._starts = [pad + len(prompt) for pad, prompt in zip(pads, prompts, strict=True)]
        self.tokens = torch.full((len(prompts), self.end), mask_id)
        for row, prompt in enumerate(prompts):
            self.tokens[row, pads[row] : self._starts[row]] = torch.tensor(prompt)

    @property
    def end(self) -> int:
        """One past the open block."""
        return self.open + self._size

    def view(self, start: int, end: int) -> View:
        """Columns start to end under the block-causal mask; padding is seen by padding alone."""
        rows, columns = torch.arange(start, end), torch.arange(end)
        earlier = columns // self._size <= rows[:, None] // self._size
        real = (columns >= self._pads)[:, None] | (rows < self._pads)[..., None]
        return View(slice(start, end), (rows - self._pads).clamp(min=0), (earlier & real)[:, None])

    def masked(self) -> Tensor:
        """[batch, size]: which positions of the open blocks are undecided."""
        return self.tokens[:, self.open :] == self._mask_id

    def place(self, chosen: Tensor, tokens: Tensor) -> None:
        """Decides the chosen positions of the open blocks; both [batch, size]."""
        self.tokens[:, self.open :] = tokens.where(chosen, self.tokens[:, self.open :])

    def open_next(self) -> None:
        """Appends a masked block to each document."""
        self.open = self.end
        more = torch.full((len(self.tokens), self._size), self._mask_id)
        self.tokens = torch.cat((self.tokens, more), 1)

    def ended(self, eos_id: int, most: int) -> bool:
        """Whether every answer holds an end token or ``most`` tokens."""
        answers = self._after_prompts()
        return all(eos_id in answer or len(answer) >= most for answer in answers)

    def answers(self, eos_id: int, most: int) -> list[list[int]]:
        """The tokens before each end token."""
        answers = (answer[:most] for answer in self._after_prompts())
        return [a[: a.index(eos_id)] if eos_id in a else a for a in answers]

    def _after_prompts(self) -> list[list[int]]:
        rows: list[list[int]] = self.tokens.tolist()
        return [row[start:] for row, start in zip(rows, self._starts, strict=True)]


def above(confidence: Tensor, masked: Tensor, threshold: float) -> Tensor:
    """The masked positions above the threshold; the likeliest in rows that have none."""
    sure = masked & (confidence > threshold)
    return sure | (likeliest(confidence, masked, 1) & ~sure.any(-1, keepdim=True))


def likeliest(confidence: Tensor, masked: Tensor, share: Tensor | int) -> Tensor:
    """The ``share`` likeliest masked positions of each row, or all if they are fewer."""
    ranked = confidence.masked_fill(~masked, -1).argsort(dim=-1, descending=True, stable=True)
    return masked & (ranked.argsort(-1) < share)
