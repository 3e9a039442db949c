"""A worker's limits as its group's record has them, applied while it runs."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from braid.config.v1.config_pb2 import Group
from services.chassis.documents import parse
from services.chassis.group_record import check_group
from services.chassis.keys import GROUPS, group_key
from services.chassis.last_good import LastGood
from services.chassis.mirror import Mirror
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.registry import Registry
from services.generation.limits import Limits

log = structlog.get_logger()


def parse_group(key: str, value: bytes) -> Group:
    """The record under a group's key. Raises ValueError or InvalidRequest for a bad one."""
    group = parse(key, value, Group)
    check_group(group)
    return group


class GroupLimits:
    """Follows ``/braid/groups/{group}``; a bad value leaves the last good one in force."""

    def __init__(
        self, registry: Registry, group: str, own: Limits, apply: Callable[[Limits], None]
    ) -> None:
        self._key = group_key(group)
        self._own = own
        self._apply = apply
        self._limits = own
        self._groups = LastGood(self._key, parse_group)
        self._mirror = Mirror(registry, GROUPS)
        self._mirror.subscribe(self._changed)

    @property
    def valid(self) -> bool:
        """Whether the stored record, if any, is the one in force."""
        return not self._groups.rejected

    async def run(self) -> None:
        """Follows the key until cancelled."""
        await self._mirror.run()

    def _changed(self, _state: MirrorState, changes: Changes) -> None:
        if not self._groups.update(changes):
            return
        group = self._groups.values.get(self._key)
        limits = self._own.under(group) if group else self._own
        if limits != self._limits:
            self._limits = limits
            log.info("limits_changed", key=self._key)
            self._apply(limits)
