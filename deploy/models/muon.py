"""The optimiser: Muon for matrices, AdamW for the rest, on float32 masters of bfloat16 weights.

Muon: Keller Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
"""

from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from deploy.models.data_parallel import Ranks

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
_MOMENTUM = 0.95
_BETAS = (0.9, 0.98)
_EPS = 1e-8


@dataclass(frozen=True)
class Rates:
    """Peak learning rates of both halves."""

    matrices: float
    rest: float


def orthogonalise(stack: Tensor, steps: int = 5) -> Tensor:
    """The nearest semi-orthogonal matrices of a stack `[n, rows, columns]`, by Newton-Schulz."""
    a, b, c = _NEWTON_SCHULZ
    tall = stack.size(-2) > stack.size(-1)
    x = (stack.mT if tall else stack).bfloat16()
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).to(x.dtype) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = x.mT if tall else x
    return result


class Optimiser:
    """Owns the masters; `step` takes the gradients that `Ranks` has averaged.

    The ranks share the orthogonalisation: each does every n-th matrix and all add up the results.
    """

    def __init__(self, model: nn.Module, rates: Rates, ranks: Ranks) -> None:
        self._ranks, self._rates = ranks, rates
        self.parameters = list(model.parameters())
        matrices = {id(p) for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n}
        self._is_matrix = [id(p) in matrices for p in self.parameters]
        self.masters = [p.detach().float().clone() for p in self.parameters]
        self._first = [torch.zeros_like(m) for m in self.masters]
        self._second = [torch.zeros_like(m) for m in self.masters]
        self._stacks: dict[torch.Size, list[int]] = defaultdict(list)
        for index, flag in enumerate(self._is_matrix):
            if flag:
                self._stacks[self.masters[index].shape].append(index)
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: list[Tensor], scale: float) -> None:
        """One update at `scale` times the peak rates."""
        self._steps += 1
        self._step_rest(gradients, scale * self._rates.rest)
        self._step_matrices(gradients, scale * self._rates.matrices)
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            parameter.copy_(master)

    def _step_rest(self, gradients: list[Tensor], rate: float) -> None:
        b1, b2 = _BETAS
        for index, gradient in enumerate(gradients):
            if self._is_matrix[index]:
                continue
            first, second = self._first[index], self._second[index]
            first.lerp_(gradient, 1 - b1)
            second.lerp_(gradient.square(), 1 - b2)
            mean, spread = first / (1 - b1**self._steps), second / (1 - b2**self._steps)
            self.masters[index].sub_(mean / (spread.sqrt() + _EPS), alpha=rate)

    def _step_matrices(self, gradients: list[Tensor], rate: float) -> None:
        updates: dict[int, Tensor] = {}
        for shape, members in self._stacks.items():
            for index in members:
                self._first[index].lerp_(gradients[index], 1 - _MOMENTUM)
            mine = members[self._ranks.rank :: self._ranks.world]
            pushed = torch.stack([gradients[i].lerp(self._first[i], _MOMENTUM) for i in mine])
            results = orthogonalise(pushed).float() * max(1.0, shape[0] / shape[1]) ** 0.5
            updates.update(zip(mine, results, strict=True))
        order = [index for members in self._stacks.values() for index in members]
        shared = [updates.get(index, torch.zeros_like(self.masters[index])) for index in order]
        self._ranks.add_up(shared)
        for index, update in zip(order, shared, strict=True):
            self.masters[index].sub_(update, alpha=rate)


class MovingAverage:
    """An exponential average of the masters; a decayed average stands for a decayed rate."""

    def __init__(self, masters: list[Tensor], keep: float) -> None:
        self._keep = keep
        self.values = [m.clone() for m in masters]

    @torch.no_grad()
    def update(self, masters: list[Tensor]) -> None:
        """Moves a little towards the masters."""
        torch._foreach_lerp_(self.values, masters, 1 - self._keep)

    @torch.no_grad()
    def store_in(self, parameters: list[nn.Parameter]) -> None:
        """Writes the average into a model's parameters."""
        for parameter, value in zip(parameters, self.values, strict=True):
            parameter.copy_(value)
