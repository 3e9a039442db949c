"""GenerateBatch through the router: each item is routed as a call of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from google.protobuf.message import DecodeError

from braid.inference.v1 import inference_pb2
from services.chassis.errors import InvalidRequest
from services.generation.batch import answer_batch

WINDOW = 64
"""Items of one stream at work at once, over all nodes."""


async def relay_batch(
    bodies: AsyncIterator[bytes], answer: Callable[[bytes], Awaitable[bytes | None]]
) -> AsyncGenerator[bytes, None]:
    """Outcomes of the items in ``bodies``; ``answer`` takes a request and gives its answer.

    Raises InvalidRequest for a message that is no item.
    """

    async def one(request: inference_pb2.GenerateRequest) -> inference_pb2.GenerateResponse:
        answered = await answer(request.SerializeToString())
        return inference_pb2.GenerateResponse.FromString(answered or b"")

    async with aclosing(answer_batch(_items(bodies), one, WINDOW)) as outcomes:
        async for outcome in outcomes:
            yield outcome.SerializeToString()


async def _items(
    bodies: AsyncIterator[bytes],
) -> AsyncIterator[inference_pb2.GenerateBatchRequest]:
    async for body in bodies:
        try:
            yield inference_pb2.GenerateBatchRequest.FromString(body)
        except DecodeError:
            raise InvalidRequest("a message is not a GenerateBatchRequest") from None
