"""A worker's inference port in this process: a real engine, a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import torch
from google.rpc import error_details_pb2, status_pb2
from prometheus_client import CollectorRegistry
from torch import Tensor

from braid.inference.v1 import inference_pb2 as pb
from braid.inference.v1 import inference_pb2_grpc
from services.ar_worker.kind import open_family as open_next_token
from services.chassis.channel import open_channel
from services.chassis.server import RpcServer, ServiceEntry
from services.chassis.status import DETAILS_KEY
from services.diffusion_worker.kind import open_family as open_block_diffusion
from services.generation.answering import Answering
from services.generation.checkpoint import Checkpoint, load_model, read_checkpoint
from services.generation.codec import TextCodec
from services.generation.engine import Engine
from services.generation.limits import Limits
from services.generation.metrics import WorkerMetrics
from services.generation.model import model_of
from services.generation.planner import planner_of
from services.generation.prefix_cache import PrefixCache
from services.generation.reception import Reception, ServedModel, TrackedEngine
from services.generation.sequence import Rows
from services.generation.servicer import InferenceServicer
from services.generation.slots import CacheShape, SlotCache
from services.generation.types import Paradigm, ServedBy
from tests.checkpoints import CARD, VOCABULARY_SIZE
from tests.generation.requests import LIMITS

FAMILIES = {
    Paradigm.DIFFUSION: open_block_diffusion,
    Paradigm.AUTOREGRESSIVE: open_next_token,
}
Answers = Mapping[str, str] | Mapping[tuple[str, str], str]
SERVICE = "braid.inference.v1.InferenceService"


class ScriptedModel:
    """Stands in for a decoder: sure of the answer that belongs to a prompt.

    ``answers`` maps plain prompts, and gaps as prefix and suffix, to texts; what has
    none is answered by an end token. Special tokens in an answer are just that.
    Works under both paradigms: the logits of a position speak of the next token.
    """

    def __init__(self, codec: TextCodec, answers: Answers, slots: int = 4) -> None:
        self.slots = slots
        self.max_context = LIMITS.max_context
        self.open = asyncio.Event()
        self._eos = codec.special(CARD["eos_token"])
        self._answers = {
            tuple(_asked(codec, prompt)): codec.render(answer, {})
            for prompt, answer in answers.items()
        }
        self._documents: dict[int, list[int]] = {}
        shape = CacheShape(1, 1, 1, torch.float32, torch.device("cpu"))
        self.prefixes = PrefixCache(SlotCache(shape, slots, 1), 0)

    def clear(self, slot: int) -> None:
        """Forgets a slot's document."""
        self._documents.pop(slot, None)

    def forward(self, batch: Sequence[tuple[int, Rows]]) -> Tensor:
        """One row of logits per wanted position."""
        rows = [self._logits(slot, part) for slot, part in batch]
        return torch.cat(rows) if rows else torch.zeros(0, VOCABULARY_SIZE)

    def _logits(self, slot: int, rows: Rows) -> Tensor:
        if rows.start == 0:
            self._documents[slot] = self._document(rows.tokens)
        document = self._documents[slot]
        logits = torch.full((len(rows.wanted), VOCABULARY_SIZE), -20.0)
        for row, index in enumerate(rows.wanted):
            position = rows.start + index + 1
            token = document[position] if position < len(document) else self._eos
            logits[row, token] = 20.0
        return logits

    def _document(self, tokens: Sequence[int]) -> list[int]:
        """The prompt that ``tokens`` begin with, and its answer."""
        for prompt, answer in self._answers.items():
            if tuple(tokens[: len(prompt)]) == prompt:
                return [*prompt, *answer]
        return []


def _asked(codec: TextCodec, prompt: str | tuple[str, str]) -> list[int]:
    """The tokens that a model sees of a prompt, or of a gap's two sides."""
    templates = CARD["prompt"]
    if isinstance(prompt, str):
        return codec.render(templates["plain"], {"prompt": prompt})
    return codec.render(templates["infill"], dict(zip(("prefix", "suffix"), prompt, strict=True)))


@dataclass(frozen=True, slots=True)
class Serving:
    """One open inference port and what is behind it."""

    stub: Any
    channel: grpc.aio.Channel
    reception: Reception
    engine: Engine
    calls: TrackedEngine
    metrics: CollectorRegistry

    async def text(self, **fields: Any) -> str:
        """The unary answer's text."""
        response = await self.stub.Generate(pb.GenerateRequest(**fields))
        return str(response.text)

    async def pieces(self, **fields: Any) -> tuple[list[str], pb.Finished]:
        """A stream's texts, and its end."""
        texts: list[str] = []
        async for message in self.stub.GenerateStream(pb.GenerateRequest(**fields)):
            if message.HasField("finished"):
                return texts, message.finished
            if message.HasField("delta"):
                texts.append(message.delta.text)
        raise AssertionError("the stream has no end")


@asynccontextmanager
async def serving(
    folder: Path,
    answers: Answers | None = None,
    *,
    model: Any = None,
    limits: Limits = LIMITS,
) -> AsyncIterator[Serving]:
    """Serves a checkpoint; with ``answers`` its decoder is replaced by a scripted one."""
    checkpoint = read_checkpoint(folder)
    module: Any = None if answers is not None else load_model(checkpoint, "cpu", "float32")
    family = FAMILIES[checkpoint.card.paradigm](checkpoint, module)
    if model is None:
        model = _model(checkpoint, module, answers)
    engine = Engine(model, family, checkpoint.vocabulary, limits.for_engine())
    engine.start()
    registry = CollectorRegistry()
    calls = TrackedEngine(engine)
    reception = _reception(checkpoint, calls, limits)
    servicer = InferenceServicer(reception, WorkerMetrics(registry), call_timeout_s=60)
    add = inference_pb2_grpc.add_InferenceServiceServicer_to_server
    server = RpcServer("127.0.0.1:0", [ServiceEntry(SERVICE, add, servicer)])
    try:
        port = await server.start(serving=True)
        async with open_channel(f"127.0.0.1:{port}") as channel:
            stub = inference_pb2_grpc.InferenceServiceStub(channel)
            yield Serving(stub, channel, reception, engine, calls, registry)
    finally:
        await engine.stop()
        await server.stop(1)


def _model(checkpoint: Checkpoint, module: Any, answers: Answers | None) -> Any:
    if answers is not None:
        return ScriptedModel(checkpoint.codec, answers)
    slots, context = LIMITS.max_batch_size, LIMITS.max_context
    return model_of(checkpoint.card, module, slots=slots, max_context=context)


def _reception(checkpoint: Checkpoint, calls: TrackedEngine, limits: Limits) -> Reception:
    card = checkpoint.card
    planner = planner_of(checkpoint)
    reception = Reception()
    reception.serve(
        ServedModel(
            ServedBy("w1", "g", "tiny", "v1", card.paradigm),
            card,
            planner,
            Answering(calls, planner),
            limits,
        )
    )
    reception.admit()
    return reception


async def refusal(call: Any) -> tuple[grpc.StatusCode, set[str]]:
    """Code and named fields of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    fields: set[str] = set()
    for key, value in caught.value.trailing_metadata() or ():
        if key == DETAILS_KEY:
            for detail in status_pb2.Status.FromString(value).details:
                bad = error_details_pb2.BadRequest()
                if detail.Unpack(bad):
                    fields |= {violation.field for violation in bad.field_violations}
    return caught.value.code(), fields
