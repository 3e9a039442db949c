"""What a group's record says to its workers, followed while they run."""

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
from services.generation.types import VersionName

log = structlog.get_logger()


def parse_group(key: str, value: bytes) -> Group:
    """The record under a group's key. Raises ValueError or InvalidRequest for a bad one."""
    group = parse(key, value, Group)
    check_group(group)
    return group


def version_of(group: Group, own: VersionName) -> VersionName:
    """What the group's workers are to serve; ``own`` where it does not say."""
    return VersionName(group.model or own.model, group.version or own.version)


class FollowedGroup:
    """Follows ``/braid/groups/{group}``; a bad value leaves the last good one in force.

    ``apply`` gets each record that is put, an empty one where there is none any more.
    """

    def __init__(self, registry: Registry, group: str, apply: Callable[[Group], None]) -> None:
        self._key = group_key(group)
        self._apply = apply
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
        if self._groups.update(changes) and self.valid:
            log.info("group_changed", key=self._key)
            self._apply(self._groups.values.get(self._key, Group()))
