"""A process that registers and mirrors, for tests that freeze it.

Prints one JSON line for each state: the keys with their revisions, and whether it
came from a new list; warnings come as lines too. Arguments: the endpoint, the
key, the prefix, the lease's life.
"""

from __future__ import annotations

import asyncio
import json
import sys

from services.chassis import log
from services.chassis.mirror import Mirror
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.registration import Registration
from services.chassis.registry import Registry
from services.chassis.settings import EtcdSettings


def show(state: MirrorState, changes: Changes) -> None:
    """Prints what a test compares with etcd."""
    keys = {key: entry.mod_revision for key, entry in state.entries.items()}
    print(json.dumps({"keys": keys, "relisted": changes.relisted}), flush=True)


async def main(endpoint: str, key: str, prefix: str, ttl_s: int) -> None:
    """Runs until it is killed."""
    async with Registry(EtcdSettings(etcd=endpoint)) as registry, asyncio.TaskGroup() as tasks:
        mirror = Mirror(registry, prefix)
        mirror.subscribe(show)
        tasks.create_task(mirror.run())
        tasks.create_task(Registration(registry, key, lambda epoch: b"%d" % epoch, ttl_s).run())


if __name__ == "__main__":
    log.configure("following-process", "warning")
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
