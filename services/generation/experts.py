"""How evenly a mixture of experts is used: token rows per layer and expert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

_EXPERTS = re.compile(r"\blayers\.(\d+)\.(?:mlp\.)?experts$")


class ExpertLoad:
    """Counts where the routers of a module send rows; nothing of it runs in a dense one.

    A row counts once for each expert that computes it, every time it is computed.
    Counts stay on the module's device until somebody asks for them.
    """

    def __init__(self, module: nn.Module) -> None:
        self._counts: dict[int, Tensor] = {}
        for layer, experts in _experts(module):
            device = next(experts.parameters()).device
            blank = torch.zeros(experts.num_experts, dtype=torch.long, device=device)
            counts = self._counts.setdefault(layer, blank)
            experts.register_forward_pre_hook(partial(_count, counts))

    def __bool__(self) -> bool:
        """Whether there are any experts."""
        return bool(self._counts)

    def totals(self) -> dict[int, list[int]]:
        """Rows so far, for each layer with experts one number per expert. Waits for the device."""
        return {layer: counts.tolist() for layer, counts in self._counts.items()}


def _count(counts: Tensor, _module: nn.Module, args: tuple[Any, ...]) -> None:
    """Called before the experts with (rows, chosen experts [rows, k], weights)."""
    counts += torch.bincount(args[1].flatten(), minlength=len(counts))


def _experts(module: nn.Module) -> Iterator[tuple[int, Any]]:
    """Each layer's experts, as transformers stacks them.

    Stacks that share their weights have the same layers: their rows are counted together.
    """
    for name, part in module.named_modules():
        place = _EXPERTS.search(name)
        if place and hasattr(part, "num_experts"):
            yield int(place[1]), part
