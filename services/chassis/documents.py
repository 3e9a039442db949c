"""From the JSON under a key to a typed value; a doubtful value is refused whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from services.chassis import message_shape, strict_json
from services.chassis.ids import FORM, is_id

M = TypeVar("M", bound=Message)

MAX_WEIGHT = 1000
_REASON_LIMIT = 300


class DocumentError(ValueError):
    """A key's value cannot be taken; ``reason`` is one line for an operator."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key} {reason}")
        self.key = key
        self.reason = reason


def parse(key: str, data: bytes, message_type: type[M]) -> M:
    """The message in proto3 JSON; raises DocumentError.

    Field names as in the contract. Only 64-bit numbers may be strings, which is
    how protobuf writes them.
    """
    message = message_type()
    try:
        value = strict_json.load_object(data)
        message_shape.check(value, cast("Descriptor", message.DESCRIPTOR))
        json_format.ParseDict(value, message)
    except (ValueError, json_format.ParseError, RecursionError) as error:
        raise DocumentError(key, _one_line(error)) from None
    return message


def message_parser(message_type: type[M]) -> Callable[[str, bytes], M]:
    """``parse`` for one type, taking a key and its value."""

    def parse_message(key: str, data: bytes) -> M:
        return parse(key, data, message_type)

    return parse_message


def parse_shares(key: str, data: bytes) -> dict[str, int]:
    """Share by version, such as ``{"v1.2": 95, "v1.3": 5}``; raises DocumentError."""
    try:
        shares = strict_json.load_object(data)
        for version, share in shares.items():
            if not is_id(version):
                raise ValueError(f"version {version!r} {FORM}")
            _require_weight(f"the share of {version}", share)
    except ValueError as error:
        raise DocumentError(key, _one_line(error)) from None
    return shares


def parse_weight(key: str, data: bytes) -> int:
    """A node's weight, a bare number from 0 to MAX_WEIGHT; raises DocumentError."""
    try:
        weight: int = strict_json.load(data)
        _require_weight("the weight", weight)
    except ValueError as error:
        raise DocumentError(key, _one_line(error)) from None
    return weight


def _require_weight(what: str, value: object) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole and 0 <= value <= MAX_WEIGHT):  # type: ignore[operator]
        raise ValueError(f"{what} must be a whole number from 0 to {MAX_WEIGHT}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_REASON_LIMIT]
