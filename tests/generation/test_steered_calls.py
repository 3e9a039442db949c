"""Calls over a real socket that ask for a form, or for drafts."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from torch import Tensor

from braid.inference.v1 import inference_pb2 as pb
from services.generation.checkpoint import read_checkpoint
from services.generation.codec import TextCodec
from services.generation.sequence import Rows
from tests.generation.answers import ANSWERS
from tests.generation.requests import LIMITS
from tests.generation.serving import ScriptedModel, Serving, refusal, serving


@pytest.mark.parametrize(
    "source",
    [
        {"infill": pb.Infill(prefix="x = ", suffix=";")},
        {"edit": pb.Edit(text="x = 7;", instruction="the number alone")},
    ],
    ids=["infill", "edit"],
)
async def test_every_input_can_be_kept_to_a_form(random: Serving, source: dict[str, Any]) -> None:
    """What fills a gap, or stands in place of a text, has the form asked for."""
    for number in range(4):
        sampling = pb.Sampling(temperature=2, seed=number)
        constraint = pb.Constraint(regex="[0-9]{2}(px|em)")
        text = await random.text(**source, sampling=sampling, constraint=constraint)
        assert re.fullmatch("[0-9]{2}(px|em)", text)


async def test_spans_are_kept_to_the_form_of_the_whole(random: Serving) -> None:
    """Whatever a random model writes into the spans, the text around them stays and all fits."""
    text = '{"name":"?","age":0,"tags":[]}'
    edit = pb.Edit(text=text, spans=[pb.Span(start=9, end=10), pb.Span(start=18, end=19)])
    constraint = pb.Constraint(
        json_schema='{"type":"object","required":["name","age"],"properties":{"name":{"type":'
        '"string","maxLength":6},"age":{"type":"integer","minimum":10,"maximum":99},"tags":{}}}'
    )
    for seed in range(4):
        sampling = pb.Sampling(temperature=2, seed=seed, max_new_tokens=40)
        fields: dict[str, Any] = {"edit": edit, "constraint": constraint, "sampling": sampling}
        pieces, finished = await random.pieces(**fields)
        document = json.loads("".join(pieces))
        assert "".join(pieces).startswith('{"name":"')
        assert "".join(pieces).endswith(',"tags":[]}')
        assert 10 <= document["age"] <= 99
        assert finished.repairs == 0


async def test_drafts_come_between_deltas(diffusion_checkpoint: Path) -> None:
    """Asked for, they show what follows; the deltas are the same as without them."""
    prompt = "say a long thing"
    model = ReadAlong(read_checkpoint(diffusion_checkpoint).codec, ANSWERS)
    async with serving(diffusion_checkpoint, model=model) as worker:
        asked = pb.GenerateRequest(prompt=prompt, diffusion=pb.Diffusion(drafts=True))
        sent, ahead = "", 0
        async for message in worker.stub.GenerateStream(asked):
            if message.HasField("draft"):
                assert ANSWERS[prompt].startswith(sent + message.draft.text)
                ahead += len(message.draft.text)
                model.reading.release()
            sent += message.delta.text
        assert sent == ANSWERS[prompt][: LIMITS.max_new_tokens]
        assert ahead > len(sent) / 2
        assert message.HasField("finished")


class ReadAlong(ScriptedModel):
    """A scripted decoder that computes once its reader is ready for more."""

    def __init__(self, codec: TextCodec, answers: Mapping[str, str]) -> None:
        super().__init__(codec, answers)
        self.reading = threading.Semaphore(1)

    def forward(self, batch: Sequence[tuple[int, Rows]]) -> Tensor:
        """As a scripted decoder's, later."""
        assert self.reading.acquire(timeout=20)
        return super().forward(batch)


async def test_drafts_are_refused_where_there_are_none(random: Serving, folder: Path) -> None:
    """A call for a whole answer and a model that writes from the left refuse them by name."""
    drafts = pb.Diffusion(drafts=True)
    bad = (grpc.StatusCode.INVALID_ARGUMENT, {"diffusion.drafts"})
    assert await refusal(random.text(prompt="abc", diffusion=drafts)) == bad
    if "ar" in folder.name:
        assert await refusal(random.pieces(prompt="abc", diffusion=drafts)) == bad
