"""A model that runs itself, served over a real socket: the promises of any other, or a refusal."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from pydantic import ValidationError
from transformers import DiffusionGemmaForBlockDiffusion

from braid.inference.v1 import inference_pb2 as pb
from services.diffusion_worker.turns import Turns
from services.generation.card import CheckpointError, ModelCard
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.denoising import plan_denoising
from services.generation.types import Denoising
from tests.checkpoints import BLOCK
from tests.eventually import eventually
from tests.gemma import MAX_STEPS, gemma_card, write_gemma
from tests.generation.requests import LIMITS
from tests.generation.serving import Serving, refusal, serving

SCHEMA = pb.Constraint(json_schema='{"type":"integer"}')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint; tests only read it."""
    return write_gemma(tmp_path_factory.mktemp("gemma"))


@pytest.fixture
async def worker(folder: Path) -> AsyncIterator[Serving]:
    """A worker that serves it."""
    async with serving(folder) as running:
        yield running


class Forwards:
    """Counts a worker's forwards; holds them up while the gate is closed, slows them otherwise."""

    def __init__(self, worker: Serving, seconds: float = 0.0) -> None:
        self.count = 0
        self.gate = threading.Event()
        self.gate.set()
        self._seconds = seconds
        module: Any = worker.engine._loop._family
        for part in (module.module.model.encoder, module.module.model.decoder):
            part.register_forward_hook(self._note)

    def _note(self, *_: Any) -> None:
        self.count += 1
        self.gate.wait(timeout=30)
        time.sleep(self._seconds)


def asked(seed: int = 1, tokens: int = 20, prompt: str = "hello", **fields: Any) -> dict[str, Any]:
    """Fields of a request."""
    return {"prompt": prompt, "sampling": pb.Sampling(max_new_tokens=tokens, seed=seed), **fields}


async def test_answer_with_its_figures(worker: Serving) -> None:
    """A stream comes canvas by canvas, joins to the unary text, and says what it took."""
    pieces, finished = await worker.pieces(**asked())
    response = await worker.stub.Generate(pb.GenerateRequest(**asked()))
    assert "".join(pieces) == response.text
    assert finished.usage == response.usage
    usage = response.usage
    assert (response.finish_reason, response.seed) == (pb.FINISH_REASON_LENGTH, 1)
    assert (usage.completion_tokens, usage.blocks) == (20, 3)
    assert usage.denoise_steps == 3 * MAX_STEPS
    assert usage.forward_passes == 3 * (1 + MAX_STEPS)
    assert usage.tokens_per_forward == pytest.approx(20 / (3 * MAX_STEPS))
    assert usage.forced_commits > 0
    assert response.best_effort
    assert response.timing.prefill.ToNanoseconds() > 0
    assert response.timing.decode.ToNanoseconds() > 0


async def test_seed_and_company(worker: Serving) -> None:
    """A seed gives one text, alone and beside others, more than there are slots; others differ."""
    requests = [asked(seed, 10 + 4 * seed, "word " * seed) for seed in range(1, 7)]
    alone = [await worker.text(**fields) for fields in requests]
    together = await asyncio.gather(*(worker.text(**fields) for fields in requests))
    assert list(together) == alone
    assert await worker.text(**asked(seed=2)) != await worker.text(**asked(seed=3))


async def test_step_cap(worker: Serving) -> None:
    """max_steps holds for every canvas; over the node's limit it is refused."""
    capped = asked(diffusion=pb.Diffusion(max_steps=2, strategy="entropy_bound"))
    _, finished = await worker.pieces(**capped)
    assert finished.usage.denoise_steps == 2 * finished.usage.blocks
    over = worker.text(**asked(diffusion=pb.Diffusion(max_steps=LIMITS.max_steps + 1)))
    assert await refusal(over) == (grpc.StatusCode.INVALID_ARGUMENT, {"diffusion.max_steps"})


async def test_drafts(worker: Serving) -> None:
    """Asked for, drafts of the open canvas come between deltas, and change nothing else."""
    plain, _ = await worker.pieces(**asked())
    message = pb.GenerateRequest(**asked(diffusion=pb.Diffusion(drafts=True)))
    events = [event async for event in worker.stub.GenerateStream(message)]
    assert [event.delta.text for event in events if event.HasField("delta")] == plain
    drafts = [event.draft for event in events if event.HasField("draft")]
    assert {draft.block_index for draft in drafts if draft.text} == {0, 1, 2}
    assert events[0].HasField("draft")


async def test_reasoning_stays_apart(tmp_path: Path) -> None:
    """A model with marks reasons where it is asked to; none of that is in the text."""
    marks = {"open": "<think>", "close": "</think>"}
    folder = write_gemma(tmp_path, thinking=marks, capabilities=["thinking", "seed"])
    async with serving(folder) as worker:
        thinking = pb.Thinking(enabled=True, include=True)
        response = await worker.stub.Generate(pb.GenerateRequest(**asked(thinking=thinking)))
        assert response.thinking
        assert response.usage.thinking_tokens > 0
        assert response.usage.prompt_tokens == len("hello") + 3
        assert response.thinking not in response.text
        limited = pb.Thinking(enabled=True, max_tokens=4)
        code, named = await refusal(worker.text(**asked(thinking=limited)))
        assert (code, named) == (grpc.StatusCode.INVALID_ARGUMENT, {"thinking.max_tokens"})


async def test_cancel_between_steps(worker: Serving) -> None:
    """A call that is cancelled costs the forward that runs and no other; the next one works."""
    expected = await worker.text(**asked())
    forwards = Forwards(worker)
    call = worker.stub.GenerateStream(pb.GenerateRequest(**asked(tokens=64)))
    await call.read()
    forwards.gate.clear()
    before = forwards.count
    call.cancel()
    await eventually(lambda: worker.reception.calls.count == 0)
    forwards.gate.set()
    await asyncio.wait_for(worker.engine.idle(), 20)
    assert forwards.count <= before + 1
    assert worker.engine.snapshot().running == 0
    assert not [thread for thread in threading.enumerate() if isinstance(thread, Turns)]
    assert await worker.text(**asked()) == expected


async def test_a_node_that_stops_leaves_nothing_running(worker: Serving) -> None:
    """What runs ends with UNAVAILABLE, and its thread with it."""
    call = worker.stub.GenerateStream(pb.GenerateRequest(**asked(tokens=64)))
    await call.read()
    forwards = Forwards(worker)
    forwards.gate.clear()
    stopping = asyncio.create_task(worker.engine.stop())
    await eventually(lambda: forwards.count > 0)
    forwards.gate.set()
    await stopping
    code, _ = await refusal(_drained(call))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert not [thread for thread in threading.enumerate() if isinstance(thread, Turns)]


async def _drained(call: Any) -> None:
    while await call.read():
        pass


async def test_budget_gives_what_there_is(worker: Serving) -> None:
    """When the budget ends, so does the answer, and says so."""
    await worker.text(**asked())
    Forwards(worker, seconds=0.02)
    budget = Duration(nanos=500_000_000)
    pieces, finished = await worker.pieces(**asked(tokens=64, latency_budget=budget))
    assert finished.finish_reason == pb.FINISH_REASON_DEADLINE
    assert finished.best_effort
    assert "".join(pieces)
    assert finished.usage.completion_tokens < 64


async def test_budget_for_no_step_at_all(worker: Serving) -> None:
    """Where not even the first step fits the call is told so."""
    forwards = Forwards(worker)
    forwards.gate.clear()
    call = asyncio.create_task(
        refusal(worker.text(**asked(latency_budget=Duration(nanos=200_000_000))))
    )
    await eventually(lambda: forwards.count == 1)
    await asyncio.sleep(0.2)
    forwards.gate.set()
    assert await call == (grpc.StatusCode.DEADLINE_EXCEEDED, set())


async def test_stop_text(worker: Serving) -> None:
    """A stop text ends the answer; what its canvas held behind it is thrown away and counted."""
    whole = await worker.text(**asked())
    stop = whole[2]
    sampling = pb.Sampling(max_new_tokens=20, seed=1, stop=[stop])
    pieces, finished = await worker.pieces(prompt="hello", sampling=sampling)
    assert "".join(pieces) == whole[: whole.index(stop)]
    assert finished.finish_reason == pb.FINISH_REASON_STOP
    usage = finished.usage
    assert usage.blocks * BLOCK == usage.completion_tokens + usage.discarded_tokens


REFUSED = [
    ({"sampling": pb.Sampling(temperature=0.5)}, "sampling.temperature"),
    ({"sampling": pb.Sampling(temperature=0)}, "sampling.temperature"),
    ({"sampling": pb.Sampling(top_p=0.9)}, "sampling.top_p"),
    ({"sampling": pb.Sampling(top_k=5)}, "sampling.top_k"),
    ({"diffusion": pb.Diffusion(strategy="threshold")}, "diffusion.strategy"),
    ({"diffusion": pb.Diffusion(confidence_threshold=0.5)}, "diffusion.confidence_threshold"),
    ({"diffusion": pb.Diffusion(factor=1)}, "diffusion.factor"),
    ({"diffusion": pb.Diffusion(block_length=2 * BLOCK)}, "diffusion.block_length"),
    ({"constraint": SCHEMA}, "constraint.json_schema"),
    ({"constraint": pb.Constraint(regex="a+")}, "constraint.regex"),
    ({"constraint": pb.Constraint(choice=pb.Choice(options=["a"]))}, "constraint.choice"),
    ({"constraint": pb.Constraint(template="a {{gap:2}}")}, "constraint.template"),
    ({"thinking": pb.Thinking(enabled=True)}, "thinking.enabled"),
    ({"thinking": pb.Thinking(max_tokens=5)}, "thinking.max_tokens"),
    ({"infill": pb.Infill(prefix="a", suffix="b")}, "infill"),
    ({"edit": pb.Edit(text="abc", instruction="shorten")}, "edit"),
    ({"edit": pb.Edit(text="abc", spans=[pb.Span(start=1, end=2)])}, "edit.spans"),
]


@pytest.mark.parametrize(("fields", "field"), REFUSED)
async def test_what_generate_does_not_offer_is_refused(
    worker: Serving, fields: dict[str, Any], field: str
) -> None:
    """INVALID_ARGUMENT with the field's name, before any compute."""
    forwards = Forwards(worker)
    given = fields if {"infill", "edit"} & fields.keys() else {"prompt": "p"} | fields
    assert await refusal(worker.text(**given)) == (grpc.StatusCode.INVALID_ARGUMENT, {field})
    assert forwards.count == 0


def test_a_groups_strategy_holds_for_models_that_know_it() -> None:
    """A group with another strategy leaves the model its own."""
    card = ModelCard.model_validate(gemma_card())
    plan = plan_denoising(Denoising(), card, replace(LIMITS, strategy="threshold"))
    assert plan is not None
    assert plan.strategy == "entropy_bound"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"capabilities": ["json_schema"]}, "capabilities"),
        ({"capabilities": ["infill"]}, "infill"),
        ({"mask_token": "<|mask|>"}, "mask_token"),
        ({"block_lengths": [BLOCK, 2 * BLOCK]}, "block_lengths"),
        ({"defaults": {"strategy": "threshold"}}, "defaults.strategy"),
        ({"prompt": gemma_card()["prompt"] | {"edit": "{instruction}{text}"}}, "prompt.edit"),
    ],
)
def test_a_card_cannot_promise_more(changes: dict[str, Any], named: str) -> None:
    """A card that declares what the model's generate does not offer is refused."""
    with pytest.raises(ValidationError, match=named):
        ModelCard.model_validate(gemma_card(**changes))


@pytest.mark.parametrize(
    ("file", "changes", "named"),
    [
        ("braid.json", {"block_length": 16}, "block_length must be the canvas_length 8"),
        (
            "braid.json",
            {"family": "masked_diffusion", "mask_token": "<|mask|>"},
            "family masked_diffusion cannot run model_type diffusion_gemma",
        ),
        (
            "config.json",
            {"model_type": "qwen3"},
            "family diffusion_gemma cannot run model_type qwen3",
        ),
    ],
)
def test_card_and_config_must_agree(
    file: str, changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    """What would be run in another way than the card says is refused."""
    path = write_gemma(tmp_path) / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=named):
        read_checkpoint(tmp_path)


def test_shapes_are_compared_before_anything_is_loaded(tmp_path: Path) -> None:
    """Weights that are not those of the config are refused by name and shape."""
    path = write_gemma(tmp_path) / "config.json"
    config = json.loads(path.read_text())
    config["text_config"]["intermediate_size"] = 64
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"mlp\..*\[.*48.*\], the config says \[.*64.*\]"):
        load_model(read_checkpoint(tmp_path), "cpu", "auto")


def test_code_of_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    """A config that brings its own classes is read as transformers' own."""
    proof = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(proof)!r}, 'w')\nclass Evil: ...\n")
    path = write_gemma(tmp_path) / "config.json"
    evil = {"AutoConfig": "evil.Evil", "AutoModelForImageTextToText": "evil.Evil"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": evil}))
    module = load_model(read_checkpoint(tmp_path), "cpu", "auto")
    assert type(module) is DiffusionGemmaForBlockDiffusion
    assert not proof.exists()
