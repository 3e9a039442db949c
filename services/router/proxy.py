"""InferenceService by passing bytes to the node that the policy chooses, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from braid.inference.v1 import inference_pb2
from services.chassis.errors import InvalidRequest, ServiceError
from services.chassis.status import DETAILS_KEY, cut, to_status
from services.generation.wire import from_proto
from services.router.attempt import Metadata, Sending, StreamedAnswer, WholeAnswer
from services.router.batch import relay_batch
from services.router.dispatch import Dispatcher
from services.router.door import Door
from services.router.features import Features, features_of
from services.router.links import GENERATE, GENERATE_BATCH, GENERATE_STREAM, SERVICE
from services.router.passage import Context, Journal, Passage

REQUEST_ID_KEY = "x-request-id"
NODE_KEY = "x-braid-node"
TARGET_KEY = "x-braid-target-node"
"""An operator's wish for one node, whatever its weight."""

CARRIED_KEYS = frozenset({"traceparent", "tracestate"})
"""Metadata of the caller that the worker gets as well."""

OWN_KEYS = frozenset({REQUEST_ID_KEY, NODE_KEY})


class InferenceProxy:
    """Reads each request once, to choose by, and never rebuilds it.

    The caller's deadline, cancellation and trace context reach the worker; the
    worker's answer and statuses reach the caller as they are.
    """

    def __init__(self, dispatcher: Dispatcher, journal: Journal, door: Door) -> None:
        self._dispatcher = dispatcher
        self._door = door
        self._journal = journal
        self._whole = WholeAnswer()
        self._streamed = StreamedAnswer()

    async def generate(self, body: bytes, context: Context) -> bytes | None:
        """InferenceService.Generate."""
        return await self._serve(body, context, self._whole)

    async def generate_stream(self, body: bytes, context: Context) -> None:
        """InferenceService.GenerateStream; writing costs less than yielding."""
        await self._serve(body, context, self._streamed)

    async def generate_batch(
        self, bodies: AsyncIterator[bytes], context: Context
    ) -> AsyncIterator[bytes]:
        """InferenceService.GenerateBatch, each item on record as a call."""

        self._door.greet(context)

        async def answer(body: bytes) -> bytes | None:
            with self._journal.passage(body, context) as passage:
                return await self._carry(passage, self._whole)

        async with aclosing(relay_batch(bodies, answer)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def smoke(self, body: bytes, node_id: str, context: Context) -> bytes:
        """The answer of one node to an operator's request, by the way of every call."""
        try:
            with self._journal.passage(body, context) as passage:
                passage.target = node_id
                return await self._carry(passage, self._whole) or b""
        except grpc.aio.AioRpcError as error:
            await _pass_on(passage, error)

    async def _serve(self, body: bytes, context: Context, sending: Sending) -> bytes | None:
        try:
            with self._journal.passage(body, context) as passage:
                answer = await self._carry(passage, sending)
        except ServiceError as error:
            await _refuse(passage, error)
        except grpc.aio.AioRpcError as error:
            await _pass_on(passage, error)
        context.set_trailing_metadata(_trailers(passage))
        return answer

    async def _carry(self, passage: Passage, sending: Sending) -> bytes | None:
        received = dict(passage.context.invocation_metadata() or ())
        with self._door.visit(passage, received) as visit:
            if TARGET_KEY in received:
                visit.require_operator()
                passage.target = str(received[TARGET_KEY])
            features = _read(passage, received, visit.caller_id)
            visit.admit(features)
            metadata = _metadata(passage, received)
            answer = await self._dispatcher.carry(passage, features, metadata, sending)
            visit.answered(answer)
            return answer


def _read(passage: Passage, received: Mapping[str, str | bytes], caller_id: str) -> Features:
    """Features of the request; raises InvalidRequest for one that breaks the contract."""
    try:
        message = inference_pb2.GenerateRequest.FromString(passage.body)
    except DecodeError:
        raise InvalidRequest("the request is not a GenerateRequest") from None
    request = from_proto(
        message,
        now=passage.arrived,
        metadata_request_id=str(received.get(REQUEST_ID_KEY) or passage.request_id),
        time_remaining_s=passage.context.time_remaining(),
    )
    passage.request_id = request.request_id
    passage.features = features_of(message, request, caller_id)
    return passage.features


def add_proxy(proxy: Any, server: grpc.aio.Server) -> None:
    """Adds the proxy to a server as InferenceService, without (de)serializing anything."""
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        GENERATE: grpc.unary_unary_rpc_method_handler(proxy.generate),
        GENERATE_STREAM: grpc.unary_stream_rpc_method_handler(proxy.generate_stream),
        GENERATE_BATCH: grpc.stream_stream_rpc_method_handler(proxy.generate_batch),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


async def _refuse(passage: Passage, error: ServiceError) -> NoReturn:
    details = (DETAILS_KEY, to_status(error).SerializeToString())
    await passage.context.abort(
        error.code, cut(error.message), trailing_metadata=(*_trailers(passage), details)
    )


async def _pass_on(passage: Passage, error: grpc.aio.AioRpcError) -> NoReturn:
    """Ends the call with the status of the worker, its details included."""
    received = tuple(pair for pair in error.trailing_metadata() or () if pair[0] not in OWN_KEYS)
    await passage.context.abort(
        error.code(), error.details() or "", trailing_metadata=(*_trailers(passage), *received)
    )


def _metadata(passage: Passage, received: Mapping[str, str | bytes]) -> Metadata:
    """What the worker is told beside the request."""
    carried = ((key, received[key]) for key in CARRIED_KEYS if key in received)
    return ((REQUEST_ID_KEY, passage.request_id), *carried)


def _trailers(passage: Passage) -> Metadata:
    """What the caller is told beside the answer."""
    request_id = (REQUEST_ID_KEY, passage.request_id)
    if passage.decision is None:
        return (request_id,)
    return (request_id, (NODE_KEY, passage.decision.node.record.node_id))
