"""What a worker may use of its device's memory, and what it uses."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import psutil
import torch

from services.chassis.process import StartFailure

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
RECOVERED_SHARE = 0.95
"""Of the ceiling: memory is called sufficient again only below it."""


class DeviceMemory:
    """The memory that a model lives in: the host's for ``cpu``, the GPU's for ``cuda``.

    ``limit_bytes`` bounds what counts as this worker's (0: the device, or the
    container's limit), ``fraction`` is how much of that it may fill. On a GPU what
    other processes hold counts as used, for it is as good as gone.
    """

    def __init__(self, device: str, limit_bytes: int = 0, fraction: float = 1.0) -> None:
        """Raises StartFailure for a device that this machine does not have."""
        _check_device(device)
        self.device = device
        self._limit_bytes = limit_bytes
        self._fraction = fraction
        self._process = psutil.Process()

    @cached_property
    def total_bytes(self) -> int:
        """What there is at most for this worker."""
        total = self._gpu()[1] if self._on_gpu else _host_bytes()
        return min(self._limit_bytes or total, total)

    @property
    def ceiling_bytes(self) -> int:
        """What may be filled of it."""
        return int(self._fraction * self.total_bytes)

    @property
    def used_bytes(self) -> int:
        """What is filled now: the process's resident memory, or what the GPU has given out."""
        if self._on_gpu:
            free, total = self._gpu()
            return total - free
        return int(self._process.memory_info().rss)

    @property
    def room_bytes(self) -> int:
        """What a model that is loaded now may take; neighbours on the host count."""
        free = self._gpu()[0] if self._on_gpu else int(psutil.virtual_memory().available)
        return max(0, min(self.ceiling_bytes - self.used_bytes, free))

    @property
    def _on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    def _gpu(self) -> tuple[int, int]:
        free, total = torch.cuda.mem_get_info(torch.device(self.device))
        return int(free), int(total)


class MemoryGate:
    """Whether memory suffices, with a dead band: what it said holds until clearly otherwise."""

    def __init__(self) -> None:
        self._open = True

    def look(self, used_bytes: int, ceiling_bytes: int) -> bool:
        """Closed above the ceiling, open again below RECOVERED_SHARE of it."""
        bound = ceiling_bytes if self._open else ceiling_bytes * RECOVERED_SHARE
        self._open = used_bytes <= bound
        return self._open


def _check_device(name: str) -> None:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise StartFailure(f"device {name!r} is none of torch's") from None
    here = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= here:
        raise StartFailure(f"device {name!r} is not here: torch sees {here} of its kind")


def _host_bytes() -> int:
    """The host's memory, or the container's share of it."""
    limits = [int(psutil.virtual_memory().total)]
    for path in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue  # another layout, or "max"
    return min(limits)
