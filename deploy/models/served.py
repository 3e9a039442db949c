"""Answers golden items over a mesh: what a caller of the pair gets, with its default settings."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format

from braid.inference.v1 import inference_pb2
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from deploy.models.evaluate import MAX_NEW_TOKENS, Answer, Figures, evaluate
from services.chassis.channel import CHANNEL_OPTIONS
from services.cli.mesh_plan import MeshOptions
from services.cli.mesh_record import MeshRecord
from services.cli.mesh_session import with_mesh
from services.cli.screen import screen

_CALL_S = 120.0


class ServedAnswerer:
    """Asks one worker of a running mesh, one item at a time."""

    def __init__(self, address: str) -> None:
        channel = grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._stub = InferenceServiceStub(channel)

    def __call__(self, item: dict[str, Any]) -> Answer:
        """The worker's answer; raises grpc.RpcError where it gives none."""
        message = {"task": item["task"], **item["input"]}
        request = json_format.ParseDict(message, inference_pb2.GenerateRequest())
        request.sampling.max_new_tokens = MAX_NEW_TOKENS
        began = time.perf_counter()
        response = self._stub.Generate(request, timeout=_CALL_S)
        return Answer(
            response.text,
            response.usage.forward_passes,
            response.usage.completion_tokens,
            time.perf_counter() - began,
        )


async def evaluate_served(
    store: Path, *, suite: str = "all", holdout: bool = False
) -> dict[str, list[Figures]]:
    """Starts a mesh on ``store`` and scores its workers; the tables by model.

    ``suite`` names one paradigm, diffusion or autoregressive, or all.

    Raises MeshFailure where the mesh does not start.
    """

    async def score_workers(mesh: MeshRecord) -> dict[str, list[Figures]]:
        return {
            f"{node.model}/{node.version}": await asyncio.to_thread(
                evaluate, ServedAnswerer(node.address), holdout=holdout
            )
            for node in mesh.nodes
            if suite in ("all", node.paradigm.removeprefix("PARADIGM_").lower())
        }

    with tempfile.TemporaryDirectory(prefix="braid-eval-") as folder:
        options = MeshOptions(state_dir=Path(folder), store=store, durable=False)
        return await with_mesh(options, screen(), score_workers) or {}
