"""InferenceService of a worker: a message in, the events of its answer out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import grpc.aio

from braid.inference.v1 import inference_pb2 as pb
from braid.inference.v1 import inference_pb2_grpc
from services.chassis.channel import LEAST_TIME_S, MAX_MESSAGE_BYTES
from services.chassis.errors import (
    AnswerTooLarge,
    DeadlineExceeded,
    UnknownModel,
    UnsupportedParameter,
)
from services.generation import wire
from services.generation.answering import gathered
from services.generation.batch import answer_batch
from services.generation.metrics import WorkerMetrics
from services.generation.observation import Observation
from services.generation.plan import Plan
from services.generation.reception import Reception, ServedModel
from services.generation.types import Event, Finished, Request
from services.generation.way_back import WayBack

REQUEST_ID_KEY = "x-request-id"
DELTA_BYTES = MAX_MESSAGE_BYTES - 4096
"""Most text in one message of a stream; the rest is room for its other fields."""
BATCH_WINDOW = 8
"""Items of a batch at once while there is no model to ask for its limits."""
LARGE_INPUT_BYTES = 16 * 1024
"""Inputs from this size on are read by a thread, so that the event loop stays free."""

Context = grpc.aio.ServicerContext[Any, Any]


class InferenceServicer(inference_pb2_grpc.InferenceServiceServicer):
    """Answers calls with whatever model the reception serves.

    A call without a deadline gets ``call_timeout_s``.
    """

    def __init__(self, reception: Reception, metrics: WorkerMetrics, call_timeout_s: float) -> None:
        self._reception = reception
        self._metrics = metrics
        self._call_timeout_s = call_timeout_s
        self._way_back = WayBack()

    async def Generate(self, message: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        """The events of the answer, gathered into one message."""
        arrived = time.monotonic()
        response = await self._generate(message, context)
        self._sending(arrived + response.timing.total.ToTimedelta().total_seconds(), context)
        return response

    async def GenerateBatch(
        self, messages: AsyncIterator[pb.GenerateBatchRequest], context: Context
    ) -> AsyncIterator[pb.GenerateBatchResponse]:
        """Twice as many items at once as share a forward: one half computes, one waits."""
        model = self._reception.model
        window = BATCH_WINDOW if model is None else 2 * model.limits.max_batch_size

        async def answer(message: pb.GenerateRequest) -> pb.GenerateResponse:
            return await self._generate(message, context)

        async with aclosing(answer_batch(messages, answer, window)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def _generate(self, message: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        with Observation(self._metrics) as call, self._reception.admitted() as model:
            request = self._read(message, context)
            call.read(request)
            _refuse_drafts(request)
            async with aclosing(self._answer(model, request, message.ByteSize())) as events:
                text, _, call.finished = await gathered(events)
            response = wire.response_to_proto(text, call.finished, request, model.served_by)
            if response.ByteSize() > MAX_MESSAGE_BYTES:
                raise AnswerTooLarge(f"the answer takes over {MAX_MESSAGE_BYTES} bytes: stream it")
            return response

    async def GenerateStream(
        self, message: pb.GenerateRequest, context: Context
    ) -> AsyncIterator[pb.GenerateStreamResponse]:
        """Each part of the answer as soon as it is final."""
        with Observation(self._metrics) as call, self._reception.admitted() as model:
            request = self._read(message, context)
            call.read(request)
            async with aclosing(self._answer(model, request, message.ByteSize())) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        call.finished = event
                        self._sending(request.arrived + event.timing.total, context)
                    for part in wire.event_to_proto(event, DELTA_BYTES, request, model.served_by):
                        yield part

    def _read(self, message: pb.GenerateRequest, context: Context) -> Request:
        remaining = context.time_remaining()
        request = wire.from_proto(
            message,
            now=time.monotonic(),
            metadata_request_id=_request_id(context),
            time_remaining_s=self._call_timeout_s if remaining is None else remaining,
        )
        return replace(request, way_back_s=self._way_back.at_most())

    def _sending(self, ended: float, context: Context) -> None:
        """Measures the way of an answer that the engine ended at ``ended``."""
        sent = self._way_back.follow(ended)
        context.add_done_callback(sent)  # type: ignore[arg-type]  # the stubs name no function

    async def _answer(
        self, model: ServedModel, request: Request, input_bytes: int
    ) -> AsyncGenerator[Event, None]:
        if request.model and request.model != model.served_by.model:
            raise UnknownModel(f"this node serves {model.served_by.model}")
        if request.deadline is not None and request.deadline - time.monotonic() <= LEAST_TIME_S:
            raise DeadlineExceeded("the deadline passed before the call was read")
        plan = await _planned(model, request, input_bytes)
        async with aclosing(model.answering.events(plan, model.limits)) as events:
            try:
                async for event in events:
                    yield event
            except DeadlineExceeded:
                self._way_back.doubt()
                raise


def _refuse_drafts(request: Request) -> None:
    if request.denoising is not None and request.denoising.drafts:
        raise UnsupportedParameter.field("diffusion.drafts", "is only supported by GenerateStream")


async def _planned(model: ServedModel, request: Request, input_bytes: int) -> Plan:
    if request.constraint is None and input_bytes < LARGE_INPUT_BYTES:
        return model.planner.plan(request, model.limits)
    return await asyncio.to_thread(model.planner.plan, request, model.limits)


def _request_id(context: Context) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == REQUEST_ID_KEY and isinstance(value, str):
            return value
    return ""
