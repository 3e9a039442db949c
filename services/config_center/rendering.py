"""Values as JSON, as an operator would write them."""

from __future__ import annotations

import json

from google.protobuf import json_format
from google.protobuf.message import Message


def render_message(message: Message) -> bytes:
    """The message as JSON with proto field names."""
    return _json(json_format.MessageToDict(message, preserving_proto_field_name=True))


def render_shares(shares: dict[str, int]) -> bytes:
    """Traffic shares as a plain object, in order of version."""
    return _json(dict(sorted(shares.items())))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
