"""Several one-thread processes that train one model: on a CPU faster than threads."""

import multiprocessing
import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Ranks:
    """The processes of one training run; averages and sums over them."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world

    @property
    def leads(self) -> bool:
        """True in the one process that reports and saves."""
        return self.rank == 0

    def add_up(self, tensors: list[Tensor]) -> None:
        """Replaces each tensor by its sum over the ranks, in one exchange."""
        if self.world == 1:
            return
        flat = torch.cat([t.reshape(-1) for t in tensors])
        dist.all_reduce(flat)
        for tensor, total in zip(
            tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True
        ):
            tensor.copy_(total.view_as(tensor))

    def average_gradients(self, parameters: list[nn.Parameter], extra: Tensor) -> list[Tensor]:
        """Mean gradients in float32; `extra` (figures every rank must agree on) is averaged along.

        A rank whose gradient is not finite would poison the others, so such entries become zero.
        """
        gradients = [
            torch.zeros_like(p, dtype=torch.float32) if p.grad is None else p.grad.float()
            for p in parameters
        ]
        gradients = [torch.nan_to_num(g, 0.0, 0.0, 0.0) for g in gradients]
        self.add_up([*gradients, extra])
        for tensor in (*gradients, extra):
            tensor.div_(self.world)
        for parameter in parameters:
            parameter.grad = None
        return gradients


class Schedule:
    """Constant rate, then a linear fall to `floor` over the last `falling` of the run.

    Progress is by steps or, if given, by minutes, whichever is further.
    """

    def __init__(
        self, steps: int, minutes: float, falling: float, floor: float = 0.0, warmup: int = 30
    ) -> None:
        self._steps, self._minutes, self._warmup = steps, minutes, warmup
        self._falling, self._floor = falling, floor
        self._began = time.monotonic()

    def progress(self, step: int) -> float:
        """How much of this run is over, by this process's own clock."""
        by_clock = (time.monotonic() - self._began) / 60 / self._minutes if self._minutes else 0.0
        return max(step / self._steps, by_clock)

    def scale(self, progress: float, step: int) -> float:
        """The factor on the peak rates."""
        fallen = self._floor + (1 - self._floor) * max(0.0, 1 - progress) / self._falling
        return min(1.0, (step + 1) / self._warmup, fallen)


def _enter(
    rank: int, world: int, port: int, work: Callable[..., None], arguments: tuple[object, ...]
) -> None:
    torch.set_num_threads(1)
    if world > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", str(port))
        dist.init_process_group("gloo", rank=rank, world_size=world)
    work(Ranks(rank, world), *arguments)
    if world > 1:
        dist.destroy_process_group()


def run_parallel(
    work: Callable[..., None], *arguments: object, world: int = 2, port: int = 29517
) -> None:
    """Runs `work(ranks, *arguments)` in `world` processes of one thread each."""
    if world == 1:
        _enter(0, 1, port, work, arguments)
        return
    context = multiprocessing.get_context("spawn")
    ranks = [
        context.Process(target=_enter, args=(rank, world, port, work, arguments))
        for rank in range(world)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    if any(process.exitcode for process in ranks):
        raise RuntimeError("a training process failed")
