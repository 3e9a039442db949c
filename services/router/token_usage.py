"""Tokens that a call is expected to use, and those that its answer says it used."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from braid.inference.v1 import inference_pb2
from services.router.features import DEFAULT_NEW_TOKENS, Features
from services.router.passage import Context

BYTES_PER_TOKEN = 4
"""Taken for the input until the answer says how many tokens it was."""


class LastWritten:
    """A call's context that keeps the last message of a stream, which tells the usage."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.last = b""

    async def write(self, message: bytes) -> None:
        """Sends a message."""
        self.last = message
        await self._context.write(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def expected_tokens(features: Features) -> float:
    """What a request may use, input and output, before anybody has counted."""
    new_tokens = features.max_new_tokens or DEFAULT_NEW_TOKENS
    return new_tokens + features.prompt_bytes / BYTES_PER_TOKEN


def used_tokens(answer: bytes | None, last: bytes) -> int | None:
    """Tokens of an answer, or of the stream that ended with ``last``; None where it says none."""
    try:
        if answer is not None:
            usage = inference_pb2.GenerateResponse.FromString(answer).usage
        else:
            event = inference_pb2.GenerateStreamResponse.FromString(last)
            if not event.HasField("finished"):
                return None
            usage = event.finished.usage
    except DecodeError:
        return None
    return usage.prompt_tokens + usage.completion_tokens
