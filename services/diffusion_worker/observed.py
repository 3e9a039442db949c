"""What the generate of diffusion_gemma tells of itself while it runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessorList
from transformers.generation.streamers import BaseStreamer
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSampler,
    EntropyBoundSamplerConfig,
)


class CanvasStreamer(BaseStreamer):
    """Keeps what was told last: the open canvas after each step, each canvas when it is final."""

    def __init__(self) -> None:
        self.draft: list[int] = []
        """The open canvas as its latest step left it; empty before the first."""
        self.canvas: list[int] = []
        """The latest final canvas, until it is taken."""
        self.steps: list[int] = []
        """Denoising steps of each canvas so far, the open one last."""
        self._prompted = False
        self._closed = True

    def put(self, value: Tensor) -> None:
        """The prompt, then each final canvas, shape [1, tokens]."""
        if self._prompted:
            self.canvas, self.draft = value[0].tolist(), []
            self._closed = True
        self._prompted = True

    def put_draft(self, value: Tensor) -> None:
        """The likeliest tokens of the canvas after a step, shape [1, canvas]."""
        if self._closed:
            self.steps.append(0)
            self._closed = False
        self.draft = value[0].tolist()
        self.steps[-1] += 1

    def end(self) -> None:
        """Nothing to do: the last canvas has been told."""

    def take(self) -> list[int]:
        """The canvas that became final since the last call; empty if none did."""
        canvas, self.canvas = self.canvas, []
        return canvas


class StepCap(LogitsProcessorList):
    """The processors of one generate; in the last step permitted, notes what misses the bar.

    That step's canvas is final whatever the sampler would have accepted of it.
    """

    def __init__(self, config: EntropyBoundSamplerConfig) -> None:
        super().__init__()
        self.missed: list[bool] = []
        """Which tokens of the canvas missed the bar; empty before its last step."""
        self._config = config

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        """The processed logits, shape [1, canvas, vocabulary]."""
        processed = super().__call__(input_ids, scores, **kwargs)
        last = int(kwargs["cur_step"]) == 1  # it counts down
        self.missed = self._missed(processed, kwargs["cur_step"]) if last else []
        return processed

    def _missed(self, logits: Tensor, step: int) -> list[bool]:
        _, length, words = logits.shape
        sampler: Any = EntropyBoundSampler(self._config, length, words, max_denoising_steps=1)
        blank = torch.zeros(logits.shape[:2], dtype=torch.long, device=logits.device)
        sampler.accept_canvas(blank, blank, logits, step)
        missed: list[bool] = (~sampler.accepted_token_mask)[0].tolist()
        return missed
