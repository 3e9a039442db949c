"""The border of protobuf: messages become Requests, Events become messages."""

from services.generation.wire.answer import (
    PARADIGMS,
    delta_to_proto,
    event_to_proto,
    finished_to_proto,
    response_to_proto,
)
from services.generation.wire.request import from_proto

__all__ = [
    "PARADIGMS",
    "delta_to_proto",
    "event_to_proto",
    "finished_to_proto",
    "from_proto",
    "response_to_proto",
]
