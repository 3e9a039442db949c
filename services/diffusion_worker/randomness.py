"""Random numbers of one request for code that draws from torch's own generators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class OwnRandomness:
    """A request's state of torch's generators.

    While it is in force they draw what they would draw in a process that had
    called ``torch.manual_seed(seed)`` for this request alone. Afterwards they are
    as they were.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._seed = seed
        self._devices = [device] if device.type == "cuda" else []
        self._states: list[torch.Tensor] = []

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Puts the request's state in the place of the process's."""
        with torch.random.fork_rng(self._devices):
            if self._states:
                self._restore()
            else:
                torch.manual_seed(self._seed)
            try:
                yield
            finally:
                self._keep()

    def _keep(self) -> None:
        on_devices = [torch.cuda.get_rng_state(device) for device in self._devices]
        self._states = [torch.get_rng_state(), *on_devices]

    def _restore(self) -> None:
        first, *on_devices = self._states
        torch.set_rng_state(first)
        for device, state in zip(self._devices, on_devices, strict=True):
            torch.cuda.set_rng_state(state, device)
