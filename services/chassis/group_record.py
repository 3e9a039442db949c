"""The record of a node group: which values it may have."""

from __future__ import annotations

from collections.abc import Mapping

from braid.config.v1 import config_pb2
from services.chassis.ids import FORM, is_id, is_version
from services.chassis.log import LEVELS
from services.chassis.strategies import check_strategy
from services.chassis.violations import Violations

_RANGES: Mapping[str, tuple[int, int]] = {
    "max_steps": (1, 1024),
    "max_batch_size": (1, 1024),
    "max_concurrency": (1, 100_000),
    "queue_length": (0, 100_000),
    "max_new_tokens": (1, 2**31 - 1),
    "max_context": (1, 2**31 - 1),
}


def check_group(group: config_pb2.Group) -> None:
    """Raises InvalidRequest naming every field out of its range."""
    faults = Violations()
    faults.require(is_id(group.group), "group.group", FORM)
    for field, value in (("model", group.model), ("version", group.version)):
        faults.require(not value or is_id(value), f"group.{field}", FORM)
    stays = not group.version or is_version(group.version)
    faults.require(stays, "group.version", "would not stay the same version")
    for field, (low, high) in _RANGES.items():
        if group.HasField(field):
            faults.integer(f"group.{field}", getattr(group, field), low, high)
    if group.HasField("log_level"):
        faults.require(
            group.log_level in LEVELS, "group.log_level", f"must be one of {', '.join(LEVELS)}"
        )
    check_strategy(group, "group", faults)
    faults.raise_if_any()
