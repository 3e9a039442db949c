"""What a worker will need of its memory, reckoned before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from services.chassis.process import StartFailure
from services.generation.load import EngineLimits
from services.generation.model_size import ModelSize
from services.generation.slots import GRAIN

_FORWARD_ROWS = EngineLimits().max_forward_rows
_LOGIT_BYTES = 4 * 3
"""Each logit is float32, and held as such, as its probability, and in an order."""


class DoesNotFit(StartFailure):
    """The memory is too small; the message has the figures, and what would fit."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A model's memory with some slots of some context; ``room_bytes`` is what there is."""

    size: ModelSize
    slots: int
    max_context: int
    prefix_bytes: int
    room_bytes: int

    @property
    def slot_bytes(self) -> int:
        """Keys and values of one slot."""
        return self.size.cache.bytes_per_slot(self.max_context) if self.size.cache else 0

    @property
    def cache_bytes(self) -> int:
        """Keys and values of all slots."""
        return self.slots * self.slot_bytes

    @property
    def activation_bytes(self) -> int:
        """An upper estimate of what one forward holds beside weights and cache."""
        size = self.size
        rows = max(_FORWARD_ROWS, self.max_context if size.sees_right else 0)
        wanted = min(rows, self.slots * size.wanted_rows)
        mask = rows * self.max_context * size.item_bytes
        layer = self.cache_bytes // size.cache.layers if size.cache else 0
        return rows * size.row_bytes() + wanted * size.vocabulary * _LOGIT_BYTES + mask + layer

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Whether there is room."""
        return self.total_bytes <= self.room_bytes

    @property
    def parts(self) -> dict[str, int]:
        """Bytes by what they are for."""
        return {
            "weights": self.size.weights_bytes,
            "cache": self.cache_bytes,
            "prefixes": self.prefix_bytes if self.size.cache else 0,
            "activations": self.activation_bytes,
        }

    def figures(self) -> dict[str, int]:
        """Everything that an operator may want to see, by name."""
        size = self.size
        return {
            "parameters_total": size.parameters_total,
            "parameters_active": size.parameters_active,
            "flops_per_token": size.flops_per_token,
            **{f"{name}_bytes": count for name, count in self.parts.items()},
            "slot_bytes": self.slot_bytes,
            "slots": self.slots,
            "max_context": self.max_context,
            "total_bytes": self.total_bytes,
            "room_bytes": self.room_bytes,
        }

    def alternatives(self) -> list[MemoryPlan]:
        """Plans that fit: fewer slots, a shorter context, or both; most first."""
        fewer = (replace(self, slots=slots) for slots in range(self.slots - 1, 0, -1))
        shorter = (replace(self, max_context=tokens) for tokens in self._contexts())
        least = (replace(self, slots=1, max_context=tokens) for tokens in self._contexts())
        found = [plan for plans in (fewer, shorter) if (plan := _first_that_fits(plans))]
        return found or [plan for plan in [_first_that_fits(least)] if plan]

    def check(self, name: str) -> None:
        """Raises DoesNotFit unless there is room."""
        if not self.fits:
            raise DoesNotFit(f"{name} {self._lack()}; {self._advice()}")

    def _contexts(self) -> Iterator[int]:
        longest = (self.max_context - 1) // GRAIN * GRAIN
        yield from range(longest, 0, -GRAIN)

    def _lack(self) -> str:
        parts = ", ".join(f"{part} {in_words(count)}" for part, count in self.parts.items())
        return (
            f"needs {in_words(self.total_bytes)} ({parts}; {in_words(self.slot_bytes)} a slot of"
            f" {self.max_context} tokens, {self.slots} slots), and has {in_words(self.room_bytes)}"
        )

    def _advice(self) -> str:
        ways = [
            f"max_batch_size {plan.slots} (BRAID_SLOTS) with max_context {plan.max_context}"
            " (BRAID_MAX_CONTEXT)"
            for plan in self.alternatives()
        ]
        if ways:
            return f"what fits: {', or '.join(ways)}"
        return "no number of slots and no context would fit: a smaller dtype or more memory would"


def _first_that_fits(plans: Iterator[MemoryPlan]) -> MemoryPlan | None:
    return next((plan for plan in plans if plan.fits), None)


def in_words(count: int) -> str:
    """Bytes as people read them, in binary units."""
    value, units = float(count), ("bytes", "KiB", "MiB", "GiB")
    for unit in units:
        if value < 1024 or unit == units[-1]:
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
