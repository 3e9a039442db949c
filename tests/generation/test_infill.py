"""Gaps: what is behind them is never said again, and what is around them stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from braid.inference.v1 import inference_pb2 as pb
from services.generation.answering import Answering, gathered
from services.generation.echo import LENGTH, echoes
from services.generation.types import Edit
from tests.fakes.engine import ScriptedEngine, say
from tests.generation.requests import LIMITS, planner, request
from tests.generation.serving import Serving, serving

AREA = "def area(r):\n    "
CALL = "print(area(3))"


@pytest.mark.parametrize(
    ("suffix", "heard"),
    [
        ("", ()),
        (")\n", ()),
        ("  \n a b c d", ()),
        (CALL, (CALL,)),
        (f"\n\n{CALL}\n", (f"\n\n{CALL}", CALL)),
        ("x" * 100, ("x" * LENGTH,)),
        (" " * 1000 + CALL, (" " * LENGTH + CALL, CALL)),
    ],
)
def test_what_counts_as_an_echo(suffix: str, heard: tuple[str, ...]) -> None:
    """The suffix's beginning, with and without its white space; too little of it counts not."""
    assert echoes(suffix) == heard


@pytest.mark.parametrize(
    ("suffix", "said", "answer"),
    [
        (CALL, f"return 3 * r * r\n{CALL}\nmore", "return 3 * r * r\n"),
        (f"\n{CALL}", f"return 3 * r * r\n{CALL}", "return 3 * r * r"),
        (f"\n{CALL}", "return 3 * r * r\nprint(area(2))", "return 3 * r * r\nprint(area(2))"),
        (")", "area(r)", "area(r)"),
    ],
)
async def test_the_answer_ends_where_the_suffix_would_come(
    folder: Path, suffix: str, said: str, answer: str
) -> None:
    """What the model says of the suffix is no part of the answer; what only looks like it is."""
    async with serving(folder, {(AREA, suffix): said}) as worker:
        pieces, finished = await worker.pieces(infill=pb.Infill(prefix=AREA, suffix=suffix))
    assert "".join(pieces) == answer
    assert finished.finish_reason == pb.FINISH_REASON_STOP


async def test_each_span_listens_for_what_is_behind_it() -> None:
    """Every gap of a text has an end of its own."""
    engine, plans = ScriptedEngine(say("1"), say("2")), planner()
    plan = plans.plan(request(Edit("one and the same three", "", ((0, 3), (7, 12)))), LIMITS)
    await gathered(Answering(engine, plans).events(plan, LIMITS))
    assert [job.echoes[0] for job in engine.jobs] == [" and the same three", "same three"]


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("", CALL),
        (AREA, ""),
        ("# <|fim_middle|> and <|eos|>\n", CALL),
        ("\tif x:\r\n\t\t", "\r\n\treturn"),
    ],
    ids=["no prefix", "no suffix", "sentinels", "white space"],
)
async def test_all_of_both_sides_is_seen(random: Serving, prefix: str, suffix: str) -> None:
    """One token a byte, and three of the template: nothing is stripped, cut or a mark."""
    sampling = pb.Sampling(max_new_tokens=4)
    message = pb.GenerateRequest(infill=pb.Infill(prefix=prefix, suffix=suffix), sampling=sampling)
    usage = (await random.stub.Generate(message)).usage
    assert usage.prompt_tokens == len((prefix + suffix).encode()) + 3
    assert not usage.input_truncated


async def test_a_long_prefix_is_cut_and_says_so(random: Serving) -> None:
    """100 KB are answered from what is near the cursor."""
    sampling = pb.Sampling(max_new_tokens=4)
    gap = pb.Infill(prefix="x = 1\n" * 17_000, suffix=CALL)
    usage = (await random.stub.Generate(pb.GenerateRequest(infill=gap, sampling=sampling))).usage
    assert usage.prompt_tokens == LIMITS.max_context - 4
    assert usage.input_truncated
