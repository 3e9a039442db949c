"""One published layout: its twin in transformers, and what a card must say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from transformers import PreTrainedConfig

from services.generation.card import CheckpointError, ModelCard

Values = tuple[object, ...]

_BOOKKEEPING = frozenset({"architectures", "auto_map", "model_type", "transformers_version"})


@dataclass(frozen=True, slots=True)
class Published:
    """One published layout, its twin, and what a card must say of it."""

    name: str
    """The class that ``architectures`` names in its config."""
    twin: type[PreTrainedConfig]
    family: Literal["masked_block_diffusion", "masked_diffusion"]
    logit_shift: bool
    block_length: str = ""
    """Field of the config that says the block length, where one does."""
    values: Mapping[str, Values] = field(default_factory=dict)
    """Fields that change what is computed, with the values that the twin computes;
    None stands for a field that is not there."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The twin's field for each one that has another name."""
    idle: frozenset[str] | None = None
    """Fields without a bearing on inference, where every other one must be known; None
    takes all fields that are not renamed as the twin's own."""
    tensors: Mapping[str, str] = field(default_factory=dict)
    """Patterns of stored names, with what becomes of them; transformers knows \\1 alone."""

    def config(self, described: Mapping[str, Any]) -> PreTrainedConfig:
        """The twin's config. Raises CheckpointError naming every field without a twin."""
        wanted: dict[str, Values] = {"architectures": ([self.name],), **self.values}
        faults = [
            f"{name} is {described.get(name)!r}, supported is {' or '.join(map(repr, values))}"
            for name, values in wanted.items()
            if described.get(name) not in values
        ]
        faults += [f"{name} is missing" for name in self.fields if described.get(name) is None]
        faults += [f"{name} is not known" for name in described if not self._knows(name)]
        if faults:
            raise CheckpointError("; ".join(faults))
        kept = {
            self.fields.get(name, name): value
            for name, value in described.items()
            if name in self.fields or (self.idle is None and name not in _BOOKKEEPING)
        }
        config: PreTrainedConfig = self.twin.from_dict(kept)
        return config

    def check(self, described: Mapping[str, Any], card: ModelCard, mask_id: int | None) -> None:
        """Raises CheckpointError where the card says anything else than the checkpoint."""
        wanted: dict[str, object] = {"family": self.family, "logit_shift": self.logit_shift}
        if described.get(self.block_length) is not None:
            wanted["block_length"] = described[self.block_length]
        faults = [
            f"{name} must be {value!r} for {self.name}"
            for name, value in wanted.items()
            if getattr(card, name) != value
        ]
        if described.get("mask_token_id", mask_id) != mask_id:
            faults.append(f"mask_token must be token {described['mask_token_id']}, not {mask_id}")
        if faults:
            raise CheckpointError("; ".join(faults))

    def _knows(self, name: str) -> bool:
        known = (self.idle, self.fields, self.values, _BOOKKEEPING)
        return self.idle is None or any(name in names for names in known if names is not None)


def renamed(name: str, tensors: Mapping[str, str]) -> str:
    """What a stored tensor is called in the twin."""
    for pattern, replacement in tensors.items():
        name = re.sub(pattern, replacement, name)
    return name
