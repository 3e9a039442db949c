"""Typed values in etcd, written by compare-and-swap."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from services.chassis.errors import (
    AlreadyExists,
    LimitExceeded,
    RevisionConflict,
    StoredValueInvalid,
)
from services.chassis.registry import Registry
from services.chassis.transaction import Put, Unchanged

M = TypeVar("M")

ABSENT = 0
"""Revision of a key that is not stored."""

MAX_VALUE_BYTES = 1024 * 1024
"""Largest value; etcd refuses requests over 1.5 MiB."""


@dataclass(frozen=True, slots=True)
class Document(Generic[M]):
    """How one kind of value is spelled in etcd."""

    parse: Callable[[str, bytes], M]
    render: Callable[[M], bytes]


@dataclass(frozen=True, slots=True)
class Stored(Generic[M]):
    """A value and the revision it was written at."""

    value: M
    revision: int


def render_message(message: Message) -> bytes:
    """The message as JSON with proto field names, as an operator would write it."""
    return _json(json_format.MessageToDict(message, preserving_proto_field_name=True))


def render_shares(shares: dict[str, int]) -> bytes:
    """Traffic shares as a plain object, in order of version."""
    return _json(dict(sorted(shares.items())))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


class Store:
    """Reads and writes documents; every write is one transaction."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def read(self, key: str, document: Document[M]) -> Stored[M] | None:
        """The stored value, None where there is none.

        Raises StoredValueInvalid where a hand edit left something that does not
        parse.
        """
        entry = await self._registry.get(key)
        if entry is None:
            return None
        try:
            return Stored(document.parse(key, entry.value), entry.mod_revision)
        except ValueError as error:
            raise StoredValueInvalid(f"{key} at revision {entry.mod_revision}: {error}") from None

    async def list(self, prefix: str, document: Document[M]) -> tuple[list[M], int]:
        """All values below ``prefix`` that parse, in order of key, and the revision read."""
        found, revision = await self.list_stored(prefix, document)
        return [stored.value for stored in found], revision

    async def list_stored(
        self, prefix: str, document: Document[M]
    ) -> tuple[builtins.list[Stored[M]], int]:
        """Likewise, each value with the revision it was written at."""
        listing = await self._registry.list(prefix)
        found = []
        for key, entry in sorted(listing.entries.items()):
            try:
                found.append(Stored(document.parse(key, entry.value), entry.mod_revision))
            except ValueError:
                continue
        return found, listing.revision

    async def replace(
        self, key: str, document: Document[M], value: M, expected_revision: int | None
    ) -> int:
        """Writes ``value`` and returns its revision.

        Raises RevisionConflict where the key is not at ``expected_revision``
        (ABSENT: must not exist; None: whatever there is is replaced), and
        LimitExceeded where the value is too large.
        """
        conditions = () if expected_revision is None else (Unchanged(key, expected_revision),)
        result = await self._registry.transact(conditions, (_put(key, document, value),))
        if not result.succeeded:
            raise await self._conflict(key)
        return result.revision

    async def create(self, key: str, document: Document[M], value: M) -> int:
        """Writes ``value`` where nothing is stored; raises AlreadyExists or LimitExceeded."""
        put = _put(key, document, value)
        result = await self._registry.transact((Unchanged(key, ABSENT),), (put,))
        if not result.succeeded:
            raise AlreadyExists(f"{key} is recorded already and cannot be changed")
        return result.revision

    async def delete(self, key: str) -> int | None:
        """Removes the value and returns the revision after that; None where there was none."""
        if await self._registry.get(key) is None:
            return None
        return await self._registry.delete(key)

    async def _conflict(self, key: str) -> RevisionConflict:
        entry = await self._registry.get(key)
        present = entry.mod_revision if entry else ABSENT
        return RevisionConflict(
            f"{key} is at revision {present}; read it again",
            metadata={"key": key, "revision": str(present)},
        )


def _put(key: str, document: Document[M], value: M) -> Put:
    rendered = document.render(value)
    if len(rendered) > MAX_VALUE_BYTES:
        raise LimitExceeded(
            f"{key}: {len(rendered)} bytes, {MAX_VALUE_BYTES} are the limit of one value"
        )
    return Put(key, rendered)
