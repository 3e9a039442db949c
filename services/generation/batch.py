"""Offline work on one stream: an answer or an error for each item, by its id."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import grpc.aio
import structlog
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.errors import (
    Draining,
    InvalidRequest,
    NotReady,
    ServiceError,
    Unauthenticated,
)
from services.chassis.status import status_of, to_status
from services.chassis.windowed import windowed
from services.generation.wire.request import REQUEST_ID_FORM, is_request_id

PATIENCE_S = 600.0
"""How long an item waits for its turn where queues are full."""

_ENDS = (Draining, NotReady, Unauthenticated)
"""What would be the outcome of every item alike: it ends the stream."""

Answer = Callable[[pb.GenerateRequest], Awaitable[pb.GenerateResponse]]

log = structlog.get_logger()


async def answer_batch(
    items: AsyncIterator[pb.GenerateBatchRequest], answer: Answer, window: int
) -> AsyncGenerator[pb.GenerateBatchResponse, None]:
    """Outcomes as they come, at most ``window`` items at work or not yet read.

    Raises Draining or NotReady where this process takes no more work, and
    Unauthenticated where it takes none of this caller.
    """

    async def outcome(item: pb.GenerateBatchRequest) -> pb.GenerateBatchResponse:
        return await _outcome(item, answer)

    async with aclosing(windowed(items, outcome, window)) as outcomes:
        async for one in outcomes:
            yield one


async def _outcome(item: pb.GenerateBatchRequest, answer: Answer) -> pb.GenerateBatchResponse:
    try:
        response = await _patient(offline(item), answer)
    except _ENDS:
        raise
    except (ServiceError, grpc.aio.AioRpcError) as error:
        return pb.GenerateBatchResponse(item_id=item.item_id, error=_item_error(_status(error)))
    except Exception as error:
        log.error("unhandled_error", exc_info=error)
        fault = to_status(ServiceError(f"unexpected {type(error).__name__}; see the node's log"))
        return pb.GenerateBatchResponse(item_id=item.item_id, error=_item_error(fault))
    return pb.GenerateBatchResponse(item_id=item.item_id, response=response)


def offline(item: pb.GenerateBatchRequest) -> pb.GenerateRequest:
    """The item's request as one that can wait, with an id. Raises InvalidRequest."""
    if not is_request_id(item.item_id):
        raise InvalidRequest.field("item_id", REQUEST_ID_FORM)
    if item.request.priority not in (pb.PRIORITY_UNSPECIFIED, pb.PRIORITY_BATCH):
        raise InvalidRequest.field("request.priority", "must be PRIORITY_BATCH or unset in a batch")
    request = pb.GenerateRequest()
    request.CopyFrom(item.request)
    request.priority = pb.PRIORITY_BATCH
    request.request_id = request.request_id or item.item_id
    return request


async def _patient(request: pb.GenerateRequest, answer: Answer) -> pb.GenerateResponse:
    """Asks again for as long as it is told when to: a full queue is no failure offline."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await answer(request)
        except (ServiceError, grpc.aio.AioRpcError) as error:
            delay_s = retry_delay_s(_status(error))
            if delay_s is None or time.monotonic() + delay_s > until:
                raise
        await asyncio.sleep(delay_s)


def retry_delay_s(status: Status) -> float | None:
    """When to come again, if that was said."""
    info = RetryInfo()
    if any(detail.Unpack(info) for detail in status.details):
        return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
    return None


def _status(error: ServiceError | grpc.aio.AioRpcError) -> Status:
    return to_status(error) if isinstance(error, ServiceError) else status_of(error)


def _item_error(status: Status) -> pb.ItemError:
    return pb.ItemError(code=status.code, message=status.message, details=status.details)
