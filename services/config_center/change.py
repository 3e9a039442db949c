"""Records of what changed: who, when, why, before and after, and never a secret."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from braid.config.v1 import config_pb2
from services.chassis import keys, strict_json

ANONYMOUS = "anonymous"
BY_HAND = "by hand"

SHOWN_BYTES = 64 * 1024
"""Longest value that a record holds; with a value of 1 MiB a transaction stays in etcd's limit."""

_SECRETS = frozenset({"hash", "salt", "key_hash"})

AUDITED = (
    keys.MODELS,
    keys.RETIRED,
    keys.GROUPS,
    keys.TRAFFIC,
    keys.CALLERS,
    keys.ROLLOUTS,
    keys.WEIGHTS,
)


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, and what for."""

    who: str = ANONYMOUS
    reason: str = ""
    rolled_back: str = ""
    """The version that a rollback takes out of traffic."""


UNNAMED = Author()


def is_audited(key: str) -> bool:
    """Whether a change of ``key`` belongs into the list of changes."""
    return key == keys.POLICY or key.startswith(AUDITED)


def change(author: Author, changed: Iterable[config_pb2.KeyChange]) -> config_pb2.Change:
    """A record of now, without its revision, which is known once it is written."""
    now = Timestamp()
    now.FromNanoseconds(time.time_ns())
    return config_pb2.Change(
        time=now,
        who=author.who,
        reason=author.reason,
        rolled_back=author.rolled_back,
        keys=changed,
    )


def key_change(
    key: str, before: bytes | None, after: bytes | None, rejected: str = ""
) -> config_pb2.KeyChange:
    """One key's part of a record; None: the key was absent, or is deleted."""
    return config_pb2.KeyChange(
        key=key, before=shown(key, before), after=shown(key, after), rejected=rejected
    )


def shown(key: str, value: bytes | None) -> str:
    """A value as others may see it."""
    if value is None:
        return ""
    if len(value) > SHOWN_BYTES:
        return f"({len(value)} bytes, too long to be kept here)"
    if key.startswith(keys.CALLERS):
        return _without_secrets(value)
    return value.decode(errors="replace")


def _without_secrets(value: bytes) -> str:
    try:
        return json.dumps(_stripped(strict_json.load(value)), ensure_ascii=False, indent=1)
    except ValueError:
        return f"({len(value)} bytes that are no record of a caller)"


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stripped(part) for name, part in value.items() if name not in _SECRETS}
    return [_stripped(part) for part in value] if isinstance(value, list) else value
