"""Callers in etcd: written with compare-and-swap, so that no key gets lost."""

from __future__ import annotations

import time

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.errors import InvalidRequest, NotFound
from services.chassis.security.api_key import new_key
from services.chassis.security.caller_record import MAX_KEYS, check_caller
from services.chassis.violations import Violations
from services.config_center.change import Author
from services.config_center.documents import CALLER
from services.config_center.store import ABSENT, Store

MAX_OVERLAP_S = 366 * 24 * 3600

log = structlog.get_logger()


class CallerStore:
    """Creates, changes, lists and removes callers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(
        self, request: config_pb2.PutCallerRequest, author: Author
    ) -> config_pb2.PutCallerResponse:
        """Replaces all of a caller but its keys, and adds one where asked to.

        Raises RevisionConflict also where another change came between reading the
        keys and writing them.
        """
        overlap_s = _check(request)
        key = keys.caller_key(request.caller.caller_id)
        stored = await self._store.read(key, CALLER)
        record, text = config_pb2.Caller(), ""
        record.CopyFrom(request.caller)
        if stored:
            record.keys.extend(stored.value.keys)
        if request.new_key:
            text = _add_key(record, overlap_s)
        seen = stored.revision if stored else ABSENT
        expected = request.expected_revision if request.HasField("expected_revision") else seen
        revision = await self._store.replace(key, CALLER, record, expected, author)
        log.info(
            "caller_stored", caller=record.caller_id, new_key=request.new_key, revision=revision
        )
        return config_pb2.PutCallerResponse(
            caller=without_hashes(record), api_key=text, revision=revision
        )

    async def list(self) -> config_pb2.ListCallersResponse:
        """All callers, by id."""
        found, revision = await self._store.list_stored(keys.CALLERS, CALLER)
        return config_pb2.ListCallersResponse(
            callers=[without_hashes(stored.value) for stored in found],
            revision=revision,
            revisions={stored.value.caller_id: stored.revision for stored in found},
        )

    async def delete(self, caller_id: str, author: Author) -> config_pb2.DeleteCallerResponse:
        """Removes one; raises NotFound."""
        revision = await self._store.delete(keys.caller_key(caller_id), author)
        if revision is None:
            raise NotFound(f"there is no caller {caller_id}")
        log.info("caller_deleted", caller=caller_id, revision=revision)
        return config_pb2.DeleteCallerResponse(revision=revision)


def without_hashes(record: config_pb2.Caller) -> config_pb2.Caller:
    """The record as others may see it."""
    shown = config_pb2.Caller()
    shown.CopyFrom(record)
    for key in shown.keys:
        key.ClearField("salt")
        key.ClearField("hash")
    return shown


def _check(request: config_pb2.PutCallerRequest) -> float:
    """Raises InvalidRequest for a bad request; returns how long old keys stay, s."""
    if request.caller.keys:
        raise InvalidRequest.field("caller.keys", "must be empty: keys are made with new_key")
    check_caller(request.caller, "caller.")
    overlap_s = request.old_keys_valid_for.ToTimedelta().total_seconds()
    faults = Violations()
    faults.number("old_keys_valid_for", overlap_s, 0, MAX_OVERLAP_S)
    faults.raise_if_any()
    return overlap_s


def _add_key(record: config_pb2.Caller, overlap_s: float) -> str:
    """Adds a new key; those there end after ``overlap_s``, those that have ended go."""
    now_s = time.time()
    end = Timestamp()
    end.FromMilliseconds(int((now_s + overlap_s) * 1000))
    kept = [key for key in record.keys if _end_s(key, end) > now_s]
    if len(kept) >= MAX_KEYS:
        raise InvalidRequest.field("new_key", f"{MAX_KEYS} keys are valid already")
    for key in kept:
        if not key.HasField("expires_at") or key.expires_at.ToNanoseconds() > end.ToNanoseconds():
            key.expires_at.CopyFrom(end)
    text, made = new_key()
    del record.keys[:]
    record.keys.extend([*kept, made])
    return text


def _end_s(key: config_pb2.ApiKey, end: Timestamp) -> float:
    own = key.expires_at if key.HasField("expires_at") else end
    return min(own.ToNanoseconds(), end.ToNanoseconds()) / 1e9
