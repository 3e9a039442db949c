"""diffusion_gemma by its own generate: its tokens, one forward a turn, many requests at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.generation.streamers import BaseStreamer
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSamplerConfig,
)

from services.chassis.errors import InvalidRequest
from services.diffusion_worker.diffusion_gemma import CanvasSequence, DiffusionGemma
from services.diffusion_worker.turns import Turns
from services.generation.checkpoint import Checkpoint, load_model, read_checkpoint
from services.generation.experts import ExpertLoad
from services.generation.sampling import Predictions
from services.generation.sequence import Progress, Sketch
from services.generation.types import FinishReason, Job
from tests.checkpoints import BLOCK
from tests.gemma import EOS, LAYERS, MAX_STEPS, write_gemma
from tests.generation.tiny import PLAN, job

NOTHING = Predictions([], [], [], [], [], [], torch.empty(0, 1))
GEMMA_PLAN = replace(PLAN, strategy="entropy_bound", entropy_bound=0.5, max_steps=MAX_STEPS)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A tiny checkpoint; tests only read it."""
    return read_checkpoint(write_gemma(tmp_path_factory.mktemp("gemma")))


@pytest.fixture
def family(checkpoint: Checkpoint) -> DiffusionGemma:
    """Its model, loaded for one test."""
    return opened(checkpoint)


def opened(checkpoint: Checkpoint) -> DiffusionGemma:
    return DiffusionGemma(checkpoint.vocabulary, load_model(checkpoint, "cpu", "float32"))


def asked(number: int = 0, max_new_tokens: int = 20, **plan: Any) -> Job:
    """One of many different jobs; ``plan`` are fields of its denoising plan."""
    prompt = tuple((7 * number + 5 * place) % 256 for place in range(9 + number))
    denoising = replace(GEMMA_PLAN, **plan)
    return job(prompt, max_new_tokens, seed=number, denoising=denoising)


def solve(sequence: CanvasSequence) -> tuple[list[int], FinishReason]:
    """The whole answer of one sequence."""
    tokens: list[int] = []
    while True:
        progress = sequence.accept(NOTHING)
        tokens += [token for piece in progress.pieces for token in piece.tokens]
        if progress.finish is not None:
            sequence.close()
            return tokens, progress.finish


def called_directly(
    family: DiffusionGemma, wanted: Job, streamer: BaseStreamer | None = None
) -> list[int]:
    """The answer tokens of transformers' generate, as anybody would call it."""
    assert wanted.denoising is not None
    torch.manual_seed(wanted.seed)
    output = family.module.generate(
        torch.tensor([wanted.prompt_ids]),
        streamer=streamer,
        max_new_tokens=wanted.max_new_tokens,
        max_denoising_steps=wanted.denoising.max_steps,
        sampler_config=EntropyBoundSamplerConfig(wanted.denoising.entropy_bound),
    )
    tokens: list[int] = output.sequences[0, len(wanted.prompt_ids) :].tolist()
    return tokens


@pytest.mark.parametrize("number", range(4))
def test_tokens_are_those_of_generate(family: DiffusionGemma, number: int) -> None:
    """Turn by turn the answer is the one that a plain call gives after seeding the process."""
    wanted = asked(number)
    direct = called_directly(family, wanted)
    torch.manual_seed(1234)
    tokens, reason = solve(family.open(wanted))
    assert EOS not in direct[:20]
    assert (tokens, reason) == (direct[:20], FinishReason.LENGTH)


def test_turns_of_others_change_nothing(family: DiffusionGemma) -> None:
    """Sequences that take turns end with the tokens that each has alone."""
    jobs = [asked(number, 12 + 5 * number) for number in range(4)]
    alone = [solve(family.open(wanted))[0] for wanted in jobs]
    running = {number: family.open(wanted) for number, wanted in enumerate(jobs)}
    together: dict[int, list[int]] = {number: [] for number in running}
    while running:
        for number, sequence in list(running.items()):
            progress = sequence.accept(NOTHING)
            together[number] += [token for piece in progress.pieces for token in piece.tokens]
            if progress.finish is not None:
                running.pop(number).close()
    assert list(together.values()) == alone


def test_the_process_keeps_its_own_random_numbers(family: DiffusionGemma) -> None:
    """What others draw from torch's generator does not depend on what is served."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    solve(family.open(asked()))
    assert torch.equal(torch.get_rng_state(), before)


def test_another_seed_is_another_answer(family: DiffusionGemma) -> None:
    """The seed is all that tells the two apart."""
    first, second = asked(), replace(asked(), seed=99)
    assert solve(family.open(first)) == solve(family.open(first))
    assert solve(family.open(first)) != solve(family.open(second))


def test_sketches_are_the_drafts_of_generate(family: DiffusionGemma) -> None:
    """Each step's canvas is shown as generate itself would show it, up to the limit."""
    wanted = asked(max_new_tokens=2 * BLOCK - 3, max_steps=3)
    shown = Drafts()
    called_directly(family, wanted, shown)
    sequence, sketches, finish = family.open(wanted), [], None
    while finish is None:
        finish = sequence.accept(NOTHING).finish
        sketches.append(sequence.sketch())
    sequence.close()
    steps = [sketch for sketch in sketches if sketch.tokens]
    assert [(0, *step) for step in shown.steps[:2]] == _flat(steps[:2])
    assert [(1, *step[: BLOCK - 3]) for step in shown.steps[3:5]] == _flat(steps[2:])


def _flat(sketches: list[Sketch]) -> list[tuple[int | None, ...]]:
    return [(sketch.block_index, *sketch.tokens) for sketch in sketches]


class Drafts(BaseStreamer):
    """A streamer as anybody would write it."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []

    def put(self, value: Tensor) -> None:
        """Nothing of it is looked at."""

    def put_draft(self, value: Tensor) -> None:
        """The canvas after a step."""
        self.steps.append(value[0].tolist())

    def end(self) -> None:
        """Nothing to do."""


def test_one_forward_a_turn(family: DiffusionGemma) -> None:
    """Each turn runs the encoder or the decoder once, and the figures count them."""
    forwards: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *_: forwards.append(name)

    family.module.model.encoder.register_forward_hook(note("encode"))
    family.module.model.decoder.register_forward_hook(note("denoise"))
    sequence = family.open(asked(max_new_tokens=BLOCK + 1, max_steps=3))
    turns = 0
    finish = None
    while finish is None:
        finish = sequence.accept(NOTHING).finish
        turns += 1
        assert len(forwards) == turns
    sequence.close()
    assert forwards == 2 * ["encode", "denoise", "denoise", "denoise"]
    figures = sequence.figures
    assert (figures.forward_passes, figures.denoise_steps, figures.blocks) == (8, 6, 2)
    assert figures.generating_forwards == 6


def test_a_canvas_at_the_cap_has_forced_tokens(family: DiffusionGemma) -> None:
    """Tokens that missed the entropy bound in the last step permitted are counted as forced."""
    sequence = family.open(asked(max_new_tokens=BLOCK, max_steps=2))
    solve(sequence)
    assert sequence.figures.denoise_steps == 2
    assert 0 < sequence.figures.forced_commits < BLOCK
    anything = family.open(asked(max_new_tokens=BLOCK, max_steps=2, entropy_bound=64.0))
    solve(anything)
    assert anything.figures.forced_commits == 0


def test_a_bound_of_zero_takes_one_token_a_step(family: DiffusionGemma) -> None:
    """The least bound of the contract is served, though the sampler wants more than 0."""
    sequence = family.open(asked(max_new_tokens=BLOCK, max_steps=2, entropy_bound=0.0))
    solve(sequence)
    assert sequence.figures.forced_commits == BLOCK - 1


def test_a_canvas_ends_when_the_model_is_content(tmp_path: Path) -> None:
    """The checkpoint's own rule for a good canvas is in force: fewer steps, nothing forced."""
    content = {"stability_threshold": 0, "confidence_threshold": 100.0}
    family = opened(read_checkpoint(write_gemma(tmp_path, content)))
    sequence = family.open(asked(max_new_tokens=2 * BLOCK))
    solve(sequence)
    assert sequence.figures.denoise_steps == 2
    assert sequence.figures.forced_commits == 0


def test_an_answer_ends_at_the_checkpoints_own_end_token(
    family: DiffusionGemma, tmp_path: Path
) -> None:
    """The end token stays out of the answer, and no canvas follows it."""
    whole, _ = solve(family.open(asked(max_new_tokens=3 * BLOCK)))
    end = whole[BLOCK + 3]
    other = opened(read_checkpoint(write_gemma(tmp_path, {"eos_token_id": [end]})))
    sequence = other.open(asked(max_new_tokens=3 * BLOCK))
    tokens, reason = solve(sequence)
    assert (tokens, reason) == (whole[: whole.index(end)], FinishReason.STOP)
    assert sequence.figures.blocks == 1 + whole.index(end) // BLOCK


def test_a_cut_hands_over_the_draft(family: DiffusionGemma) -> None:
    """What the latest step thought likeliest is the answer, all of it forced."""
    sequence = family.open(asked(max_new_tokens=BLOCK - 2))
    assert sequence.cut() == Progress()
    sequence.accept(NOTHING)
    sequence.accept(NOTHING)
    [piece] = sequence.cut().pieces
    sequence.close()
    assert len(piece.tokens) == BLOCK - 2
    assert sequence.figures.forced_commits == BLOCK - 2


@pytest.mark.parametrize(("canvases", "forwards", "steps"), [(1, 4, 3), (2, 9, 3), (9, 9, 3)])
def test_little_time_means_fewer_steps(
    family: DiffusionGemma, canvases: int, forwards: int, steps: int
) -> None:
    """A canvas is planned for the forwards that are left, with room for one canvas more."""
    sequence = family.open(asked(max_new_tokens=canvases * BLOCK))
    sequence.forwards_left = forwards
    progress = Progress()
    while not progress.pieces:
        progress = sequence.accept(NOTHING)
    sequence.close()
    assert progress.pieces[0].denoise_steps == steps


def test_close_ends_generate(family: DiffusionGemma) -> None:
    """Between any two forwards, and before the first: no thread is left, and others go on."""
    sequences = [family.open(asked(number)) for number in range(6)]
    for turns, sequence in enumerate(sequences):
        for _ in range(turns):
            sequence.accept(NOTHING)
        sequence.close()
    assert not [thread for thread in threading.enumerate() if isinstance(thread, Turns)]
    assert solve(family.open(asked()))[0] == called_directly(family, asked())[:20]


def test_figures_that_are_no_numbers_fail_the_sequence(family: DiffusionGemma) -> None:
    """A fault inside generate comes out of the turn; the next request is not touched by it."""
    expected = called_directly(family, asked())[:20]

    def spoil(*call: Any) -> Tensor:
        return torch.full_like(call[2], torch.nan)

    hook = family.module.lm_head.register_forward_hook(spoil)
    sequence = family.open(asked())
    sequence.accept(NOTHING)
    with pytest.raises(RuntimeError):
        sequence.accept(NOTHING)
    sequence.close()
    hook.remove()
    assert solve(family.open(asked()))[0] == expected


def test_other_strategies_are_refused(family: DiffusionGemma) -> None:
    """The sampler knows one strategy; a plan with another does not start."""
    with pytest.raises(InvalidRequest):
        family.open(asked(strategy="threshold"))


def test_experts_are_counted_in_both_halves(family: DiffusionGemma) -> None:
    """Each layer counts every row of encoder and decoder once for each of its experts."""
    load = ExpertLoad(family.module)
    wanted = asked(max_new_tokens=BLOCK, max_steps=3)
    solve(family.open(wanted))
    rows = len(wanted.prompt_ids) + 3 * BLOCK
    totals = load.totals()
    assert sorted(totals) == list(range(LAYERS))
    assert all(sum(counts) == 2 * rows for counts in totals.values())
