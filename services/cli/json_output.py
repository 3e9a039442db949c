"""Messages as JSON with the contract's field names."""

from __future__ import annotations

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message


def as_json(message: Message, *, indent: int | None = 2) -> str:
    """``message`` as JSON text; without ``indent`` it is a single line."""
    return MessageToJson(
        message, preserving_proto_field_name=True, indent=indent, ensure_ascii=False
    )
