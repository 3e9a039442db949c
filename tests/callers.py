"""Records of callers, and keys that fit them, for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass

from google.protobuf.json_format import MessageToDict

from braid.config.v1 import config_pb2
from services.chassis.entries import Entry
from services.chassis.keys import caller_key
from services.chassis.mirror_state import Changes
from services.chassis.security.api_key import new_key


@dataclass
class Known:
    """A caller as stored, and the key it has."""

    record: config_pb2.Caller
    api_key: str

    @property
    def key(self) -> str:
        """Its key in etcd."""
        return caller_key(self.record.caller_id)

    @property
    def value(self) -> bytes:
        """Its value in etcd."""
        return json.dumps(MessageToDict(self.record, preserving_proto_field_name=True)).encode()

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What it sends with a call."""
        return (("authorization", f"Bearer {self.api_key}"),)


def known(caller_id: str = "editor", record: config_pb2.Caller | None = None) -> Known:
    """A caller with one key; ``record`` says the rest."""
    text, key = new_key()
    whole = config_pb2.Caller()
    whole.CopyFrom(record or config_pb2.Caller())
    whole.caller_id = caller_id
    whole.keys.append(key)
    return Known(whole, text)


def changes(*callers: Known) -> Changes:
    """As a mirror would tell of them."""
    return Changes(put=tuple(Entry(one.key, one.value, 1) for one in callers))
