"""InferenceService by passing bytes to the node that the policy chooses, and back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from random import Random
from typing import Any, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from braid.inference.v1 import inference_pb2
from services.chassis.channel import LEAST_TIME_S
from services.chassis.errors import (
    DeadlineExceeded,
    InvalidRequest,
    RegistryUnavailable,
    ServiceError,
)
from services.chassis.status import DETAILS_KEY, cut, reason_of, to_status
from services.generation.wire import from_proto
from services.router.batch import relay_batch
from services.router.features import Features, features_of
from services.router.links import GENERATE, GENERATE_BATCH, GENERATE_STREAM, SERVICE, Link, Links
from services.router.passage import Context, Journal, Passage, TableSource
from services.router.policy import Decision, choose, overrides_of
from services.router.pool import NOBODY
from services.router.worker_failures import never_started, own_fault

Metadata = tuple[tuple[str, str | bytes], ...]
Send = Callable[[Passage, Link, bytes, Metadata, float], Awaitable[bytes | None]]

REQUEST_ID_KEY = "x-request-id"
NODE_KEY = "x-braid-node"
CARRIED_KEYS = frozenset({"traceparent", "tracestate"})
"""Metadata of the caller that the worker gets as well."""

OWN_KEYS = frozenset({REQUEST_ID_KEY, NODE_KEY})


class InferenceProxy:
    """Reads each request once, to choose by, and never rebuilds it.

    The caller's deadline, cancellation and trace context reach the worker; the
    worker's answer and statuses reach the caller as they are. A call without a
    deadline gets ``default_deadline_s``.
    """

    def __init__(
        self,
        tables: TableSource,
        links: Links,
        journal: Journal,
        default_deadline_s: float,
        rng: Random,
    ) -> None:
        self._tables = tables
        self._links = links
        self._journal = journal
        self._default_deadline_s = default_deadline_s
        self._rng = rng

    async def generate(self, body: bytes, context: Context) -> bytes | None:
        """InferenceService.Generate."""
        return await self._serve(body, context, _send_unary)

    async def generate_stream(self, body: bytes, context: Context) -> None:
        """InferenceService.GenerateStream; writing costs less than yielding."""
        await self._serve(body, context, _relay_stream)

    async def generate_batch(
        self, bodies: AsyncIterator[bytes], context: Context
    ) -> AsyncIterator[bytes]:
        """InferenceService.GenerateBatch, each item on record as a call."""

        async def answer(body: bytes) -> bytes | None:
            with self._recorded(body, context) as passage:
                return await self._carry(passage, _send_unary)

        async with aclosing(relay_batch(bodies, answer)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def _serve(self, body: bytes, context: Context, send: Send) -> bytes | None:
        try:
            with self._recorded(body, context) as passage:
                answer = await self._carry(passage, send)
        except ServiceError as error:
            await _refuse(passage, error)
        except grpc.aio.AioRpcError as error:
            await _pass_on(passage, error)
        context.set_trailing_metadata(_trailers(passage))
        return answer

    @contextmanager
    def _recorded(self, body: bytes, context: Context) -> Iterator[Passage]:
        """A passage that is told how the block ends."""
        with self._journal.passage(body, context) as passage:
            try:
                yield passage
            except ServiceError as error:
                passage.ended(error.code, error.reason)
                raise
            except grpc.aio.AioRpcError as error:
                passage.ended(error.code(), reason_of(error))
                raise
            except asyncio.CancelledError:
                passage.ended(_end_by_caller(context))
                raise
            passage.ended(grpc.StatusCode.OK)

    async def _carry(self, passage: Passage, send: Send) -> bytes | None:
        """Sends the call to a node, and to one other where the first surely did not start it."""
        received = dict(passage.context.invocation_metadata() or ())
        features = self._read(passage, received)
        metadata = _metadata(passage, received)
        tried = NOBODY
        while True:
            decision = self._decide(passage, features, tried)
            node = decision.node
            try:
                return await self._attempt(passage, decision, features, metadata, send)
            except grpc.aio.AioRpcError as error:
                if tried or passage.answered or not never_started(error):
                    raise own_fault(error) or error from None
                tried = frozenset({node.key})
                self._journal.retried()

    async def _attempt(
        self,
        passage: Passage,
        decision: Decision,
        features: Features,
        metadata: Metadata,
        send: Send,
    ) -> bytes | None:
        """Sends the call to the node chosen, in the shape that its rule gives it."""
        node, body = decision.node, passage.body
        overrides = overrides_of(decision, features, self._tables.table)
        if overrides:
            body, features = body + overrides.as_bytes(), overrides.applied_to(features)
        timeout_s = self._remaining_s(passage, decision.rule.route.timeout_s)
        link = self._links.at(node.record.address)
        with link.used(), node.load.carrying(features.forwards(diffusion=node.diffusion)):
            return await send(passage, link, body, metadata, timeout_s)

    def _read(self, passage: Passage, received: Mapping[str, str | bytes]) -> Features:
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
        passage.features = features_of(message, request)
        return passage.features

    def _decide(self, passage: Passage, features: Features, tried: frozenset[str]) -> Decision:
        if not self._tables.loaded:
            raise RegistryUnavailable("the registry has not answered yet", retry_after_s=1.0)
        passage.decision = choose(features, self._tables.table, self._rng, tried)
        return passage.decision

    def _remaining_s(self, passage: Passage, limit_s: float | None) -> float:
        """Time left to the call: by its own deadline, else the default, and by its rule."""
        remaining_s = passage.context.time_remaining()
        if remaining_s is None:
            remaining_s = self._default_deadline_s - (time.monotonic() - passage.arrived)
        if limit_s is not None:
            remaining_s = min(remaining_s, limit_s - (time.monotonic() - passage.arrived))
        if remaining_s <= LEAST_TIME_S:
            raise DeadlineExceeded("the call's deadline had passed before it was sent on")
        return remaining_s


def add_proxy(proxy: Any, server: grpc.aio.Server) -> None:
    """Adds the proxy to a server as InferenceService, without (de)serializing anything."""
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        GENERATE: grpc.unary_unary_rpc_method_handler(proxy.generate),
        GENERATE_STREAM: grpc.unary_stream_rpc_method_handler(proxy.generate_stream),
        GENERATE_BATCH: grpc.stream_stream_rpc_method_handler(proxy.generate_batch),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


async def _send_unary(
    _passage: Passage, link: Link, body: bytes, metadata: Metadata, timeout_s: float
) -> bytes:
    answer: bytes = await link.generate(body, timeout=timeout_s, metadata=metadata)
    return answer


async def _relay_stream(
    passage: Passage, link: Link, body: bytes, metadata: Metadata, timeout_s: float
) -> None:
    """Passes each message on before it reads the next, so a slow reader slows its worker."""
    call = link.generate_stream(body, timeout=timeout_s, metadata=metadata)
    try:
        while (message := await call.read()) is not grpc.aio.EOF:
            passage.answered = True
            await passage.context.write(message)
    finally:
        call.cancel()


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


def _end_by_caller(context: Context) -> grpc.StatusCode:
    """Why the caller's end of a call went away: it was cancelled, or too late."""
    late = context.time_remaining() == 0
    return grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED
