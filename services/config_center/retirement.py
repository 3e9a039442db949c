"""Taking versions out of the registry, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from braid.config.v1 import config_pb2
from braid.worker.v1 import worker_pb2
from services.chassis import keys
from services.chassis.documents import message_parser
from services.chassis.errors import AlreadyExists, InvalidRequest, NotFound, StillInUse
from services.chassis.transaction import Unchanged
from services.config_center.change import Author
from services.config_center.documents import GROUP, MODEL_VERSION, ROLLOUT, SHARES
from services.config_center.rendering import render_message
from services.config_center.rollout.steps import ACTIVE
from services.config_center.store import ABSENT, Document, Store, Stored, Write, write

NODE = Document(message_parser(worker_pb2.Node), render_message)


@dataclass(slots=True)
class Uses:
    """Who has a version, and the state of the keys that this was read from."""

    users: list[str] = field(default_factory=list)
    seen: list[Unchanged] = field(default_factory=list)


class Retirement:
    """Retires versions; a name that was retired is never recorded again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def check_free(self, model: str, version: str) -> Unchanged:
        """Raises AlreadyExists where the name was retired; the condition that it stays free."""
        key = keys.retired_key(model, version)
        if await self._store.read(key, MODEL_VERSION):
            raise AlreadyExists(f"{model} {version} was retired; its name is not used again")
        return Unchanged(key, ABSENT)

    async def check_parents(self, parents: Iterable[config_pb2.ModelParent]) -> None:
        """Raises InvalidRequest for a parent that nobody recorded."""
        for index, parent in enumerate(parents):
            names = (keys.model_key, keys.retired_key)
            found = [
                await self._store.read(name(parent.model, parent.version), MODEL_VERSION)
                for name in names
            ]
            if not any(found):
                raise InvalidRequest.field(f"parents[{index}]", "is not recorded")

    async def retire(self, model: str, version: str, author: Author) -> int:
        """Moves the record away in one revision; raises NotFound and StillInUse."""
        key = keys.model_key(model, version)
        record = await self._store.read(key, MODEL_VERSION)
        if record is None:
            raise NotFound(f"model {model} has no version {version}")
        uses = await self._uses(model, version)
        if uses.users:
            raise StillInUse(f"{model} {version} is in use: {', '.join(uses.users)}")
        writes = [
            Write(key, None, record.revision),
            write(keys.retired_key(model, version), MODEL_VERSION, record.value, ABSENT),
        ]
        return await self._store.commit(writes, author, uses.seen)

    async def _uses(self, model: str, version: str) -> Uses:
        uses = Uses()
        traffic, key = (
            await self._store.read(keys.traffic_key(model), SHARES),
            keys.rollout_key(model),
        )
        uses.seen.append(Unchanged(keys.traffic_key(model), _revision(traffic)))
        if traffic and traffic.value.get(version):
            uses.users.append("traffic")
        rollout = await self._store.read(key, ROLLOUT)
        uses.seen.append(Unchanged(key, _revision(rollout)))
        if (
            rollout
            and rollout.value.state in ACTIVE
            and version
            in (
                rollout.value.candidate,
                rollout.value.stable,
            )
        ):
            uses.users.append("rollout")
        groups, _ = await self._store.list(keys.GROUPS, GROUP)
        uses.users += [
            f"group {it.group}"
            for it in groups
            if it.version == version and it.model in ("", model)
        ]
        nodes, _ = await self._store.list(keys.NODES, NODE)
        uses.users += [
            f"node {it.node_id}" for it in nodes if (it.model, it.version) == (model, version)
        ]
        return uses


def _revision(stored: Stored[config_pb2.Rollout] | Stored[dict[str, int]] | None) -> int:
    return stored.revision if stored else ABSENT
