"""Jobs: defaults, limits and what a model cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from braid.config.v1.config_pb2 import Group
from services.chassis.errors import InvalidRequest, LimitExceeded, UnsupportedParameter
from services.chassis.strategies import PARAMETER_OF, PARAMETERS, followers_of
from services.generation.limits import Limits
from services.generation.plan import Plan
from services.generation.refusals import RUNS
from services.generation.types import (
    Constraint,
    Denoising,
    Edit,
    Infill,
    Paradigm,
    Sampling,
    Thinking,
)
from tests.generation.requests import LIMITS, planner, request

DIFFUSION, AUTOREGRESSIVE = Paradigm.DIFFUSION, Paradigm.AUTOREGRESSIVE
BOTH = pytest.mark.parametrize("paradigm", [DIFFUSION, AUTOREGRESSIVE])


def plan(paradigm: Paradigm, source: Any = "hello", limits: Limits = LIMITS, **fields: Any) -> Plan:
    return planner(paradigm).plan(request(source, **fields), limits)


def refused(kind: type[InvalidRequest], paradigm: Paradigm, **fields: Any) -> str:
    with pytest.raises(kind) as caught:
        plan(paradigm, **fields)
    assert caught.type is kind
    return caught.value.violations[0].field


@BOTH
def test_defaults_are_filled_in(paradigm: Paradigm) -> None:
    """Without a word from the caller the group's and the model's defaults hold."""
    job = plan(paradigm).job
    assert (job.max_new_tokens, job.temperature, job.top_p, job.top_k) == (64, 0.0, 1.0, 0)
    assert job.seed >= 0
    assert (job.denoising is not None) is (paradigm is DIFFUSION)


@BOTH
def test_given_values_are_kept(paradigm: Paradigm) -> None:
    """What the caller sets is what the engine is asked for."""
    sampling = Sampling(5, 0.5, 0.9, 7, 11, ("stop",))
    job = plan(paradigm, sampling=sampling).job
    assert (
        Sampling(job.max_new_tokens, job.temperature, job.top_p, job.top_k, job.seed, job.stop)
        == sampling
    )


@BOTH
def test_fresh_seeds_differ(paradigm: Paradigm) -> None:
    """Two calls without a seed get different ones."""
    assert plan(paradigm).job.seed != plan(paradigm).job.seed


@BOTH
def test_prompt_and_answer_must_fit_the_context(paradigm: Paradigm) -> None:
    """Up to the context's last token a request is taken; one more is refused before compute."""
    limits = LIMITS.under(Group(max_new_tokens=256))
    prompt = "x" * 232  # 234 tokens with its marks, of 256
    job = plan(paradigm, prompt, limits, sampling=Sampling(max_new_tokens=22)).job
    assert len(job.prompt_ids) + job.max_new_tokens == 256
    field = refused(
        LimitExceeded, paradigm, source=prompt, limits=limits, sampling=Sampling(max_new_tokens=23)
    )
    assert field == "sampling.max_new_tokens"


@BOTH
def test_unset_length_is_what_the_context_leaves(paradigm: Paradigm) -> None:
    """A long prompt without max_new_tokens gets the rest of the context."""
    assert plan(paradigm, "x" * 240).job.max_new_tokens == 14


@BOTH
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"sampling": Sampling(max_new_tokens=65)}, "sampling.max_new_tokens"),
        ({"sampling": Sampling(max_new_tokens=2**31 - 1)}, "sampling.max_new_tokens"),
        ({"thinking": Thinking(enabled=True, max_tokens=65)}, "thinking.max_tokens"),
        ({"source": "x" * 300}, "prompt"),
        (
            {
                "source": Edit("abc", "", ((0, 1), (1, 2), (2, 3))),
                "sampling": Sampling(max_new_tokens=2),
            },
            "edit.spans",
        ),
    ],
)
def test_over_the_limit_is_refused(paradigm: Paradigm, fields: Any, field: str) -> None:
    """What asks for more than a limit is refused with its name, never cut silently."""
    assert refused(LimitExceeded, paradigm, **fields) == field


def test_steps_over_the_limit_are_refused() -> None:
    """max_steps above the group's limit is refused."""
    assert refused(LimitExceeded, DIFFUSION, denoising=Denoising(17)) == "diffusion.max_steps"


@pytest.mark.parametrize(
    ("denoising", "field"),
    [
        (Denoising(max_steps=4), "diffusion.max_steps"),
        (Denoising(block_length=8), "diffusion.block_length"),
        (Denoising(confidence_threshold=0.5), "diffusion.confidence_threshold"),
        (Denoising(strategy="threshold"), "diffusion.strategy"),
        (Denoising(factor=1.0), "diffusion.factor"),
        (Denoising(entropy_bound=0.0), "diffusion.entropy_bound"),
        (Denoising(drafts=True), "diffusion.drafts"),
    ],
)
def test_autoregressive_refuses_denoising(denoising: Denoising, field: str) -> None:
    """A parameter of diffusion is refused by an autoregressive model, not ignored."""
    assert refused(UnsupportedParameter, AUTOREGRESSIVE, denoising=denoising) == field


def test_empty_denoising_is_fine_for_both() -> None:
    """A diffusion message that asks for nothing is no reason to refuse."""
    assert plan(AUTOREGRESSIVE, denoising=Denoising()).job.denoising is None


@pytest.mark.parametrize(
    ("card", "taken", "refused_length"),
    [({}, (None, 8), 16), ({"block_lengths": (4, 8, 16)}, (None, 4, 8, 16), 32)],
)
def test_block_length_must_be_one_trained_for(
    card: dict[str, Any], taken: tuple[int | None, ...], refused_length: int
) -> None:
    """What the card lists is taken, 8 where none is named; others are refused with that list."""
    able = planner(DIFFUSION, **card)
    for length in taken:
        job = able.plan(request(denoising=Denoising(block_length=length)), LIMITS).job
        assert job.denoising is not None
        assert job.denoising.block_length == (length or 8)
    with pytest.raises(UnsupportedParameter, match="8") as caught:
        able.plan(request(denoising=Denoising(block_length=refused_length)), LIMITS)
    assert caught.value.violations[0].field == "diffusion.block_length"


@pytest.mark.parametrize(
    ("strategy", "parameter", "model", "group", "call"),
    [
        ("threshold", "confidence_threshold", 0.5, 0.75, 0.25),
        ("distance_threshold", "confidence_threshold", 0.5, 0.75, 0.25),
        ("frontier_run", "confidence_threshold", 0.5, 0.75, 0.25),
        ("margin", "confidence_threshold", 0.5, 0.75, 0.25),
        ("factor", "factor", 1.0, 2.0, 0.5),
        ("entropy_bound", "entropy_bound", 0.1, 0.5, 0.0),
    ],
)
def test_parameter_comes_from_call_then_group_then_model(
    strategy: str, parameter: str, model: float, group: float, call: float
) -> None:
    """The nearest word on what the strategy goes by holds, zero too."""
    hot: dict[str, Any] = {parameter: group}

    def value(limits: Limits, **asked: Any) -> Any:
        job = plan(DIFFUSION, limits=limits, denoising=Denoising(strategy=strategy, **asked)).job
        return getattr(job.denoising, parameter)

    assert value(LIMITS) == model
    assert value(LIMITS.under(Group(**hot))) == group
    assert value(LIMITS.under(Group(**hot)), **{parameter: call}) == call


def test_strategy_comes_from_call_then_group_then_model() -> None:
    """The nearest word on the strategy holds."""
    group = LIMITS.under(Group(strategy="factor"))

    def strategy(limits: Limits, asked: str | None = None) -> str:
        job = plan(DIFFUSION, limits=limits, denoising=Denoising(strategy=asked)).job
        assert job.denoising is not None
        return job.denoising.strategy

    assert strategy(LIMITS) == "distance_threshold"
    assert strategy(group) == "factor"
    assert strategy(group, "random") == "random"


@pytest.mark.parametrize("strategy", PARAMETER_OF)
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_parameter_of_another_strategy_is_refused(strategy: str, parameter: str) -> None:
    """What the strategy in force would not look at is refused, with those that do, not ignored."""
    asked: dict[str, Any] = {parameter: 0.5}
    hot = LIMITS.under(Group(strategy=strategy))
    if PARAMETER_OF[strategy] == parameter:
        assert plan(DIFFUSION, limits=hot, denoising=Denoising(**asked))
        return
    for limits, denoising in (
        (LIMITS, Denoising(strategy=strategy, **asked)),
        (hot, Denoising(**asked)),
    ):
        with pytest.raises(
            UnsupportedParameter, match=", ".join(followers_of(parameter))
        ) as caught:
            plan(DIFFUSION, limits=limits, denoising=denoising)
        assert caught.value.violations[0].field == f"diffusion.{parameter}"


@BOTH
def test_constraint_that_is_not_kept_to_is_refused(paradigm: Paradigm) -> None:
    """A form that this worker cannot promise is refused by name."""
    with pytest.raises(UnsupportedParameter) as caught:
        planner(paradigm, capabilities=["infill"]).plan(
            request(constraint=Constraint("regex", "a")), LIMITS
        )
    assert caught.value.violations[0].field == "constraint.regex"


@BOTH
@pytest.mark.parametrize(
    ("template", "fields"),
    [
        ("no gap", {}),
        ("{{gap:0}}", {}),
        ("{{gap:}}", {}),
        ("{{gap:2}} {{gap: 3}}", {}),
        ("{{gap:1}}" * 65, {}),
        ("{{gap:64}}{{gap:1}}", {}),
        ("{{gap:5}}", {"sampling": Sampling(max_new_tokens=4)}),
        ("{{gap:5}}", {"source": Infill("a", "b")}),
    ],
)
def test_template_that_cannot_be_filled_is_refused(
    paradigm: Paradigm, template: str, fields: dict[str, Any]
) -> None:
    """Gaps that are broken, too many or too long, and inputs that say nothing of them."""
    with pytest.raises(InvalidRequest) as caught:
        plan(paradigm, constraint=Constraint("template", template), **fields)
    assert caught.value.violations[0].field == "constraint.template"


@BOTH
@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (Constraint("json_schema", '{"not":{}}'), "/not"),
        (Constraint("regex", "(?=a)"), "at character"),
        (Constraint("regex", "("), "no regular expression"),
    ],
)
def test_form_that_cannot_be_compiled_is_refused(
    paradigm: Paradigm, constraint: Constraint, words: str
) -> None:
    """What is not regular or not known is named."""
    with pytest.raises(InvalidRequest, match=words) as caught:
        plan(paradigm, constraint=constraint)
    assert caught.value.violations[0].field == f"constraint.{constraint.kind}"


@BOTH
def test_stop_texts_beside_a_constraint_are_refused(paradigm: Paradigm) -> None:
    """A stop text would break the form that the answer is kept to."""
    constraint = Constraint("choice", options=("yes", "no"))
    stopped = Sampling(stop=("e",))
    field = refused(UnsupportedParameter, paradigm, constraint=constraint, sampling=stopped)
    assert field == "sampling.stop"


def test_strategy_that_no_form_can_be_kept_by_is_refused() -> None:
    """Beside a constraint only those that settle the answer from the left are honoured."""
    constraint = Constraint("choice", options=("yes", "no"))
    denoising = Denoising(strategy="random")
    field = refused(UnsupportedParameter, DIFFUSION, constraint=constraint, denoising=denoising)
    assert field == "diffusion.strategy"
    for strategy in RUNS:
        asked = Denoising(strategy=strategy)
        assert plan(DIFFUSION, constraint=constraint, denoising=asked).job.automaton is not None


@BOTH
@pytest.mark.parametrize("source", ["a", Infill("a", "b"), Edit("a b", "swap them")])
def test_gaps_and_rewritten_texts_are_kept_to_their_form(paradigm: Paradigm, source: Any) -> None:
    """Whatever is answered by one sequence is steered, not judged."""
    kept = plan(paradigm, source, constraint=Constraint("regex", "[0-9]+"))
    assert kept.job.automaton is not None
    assert kept.exact


@BOTH
def test_spans_are_filled_so_that_the_whole_has_its_form(paradigm: Paradigm) -> None:
    """Each is steered by what is kept around it; where nothing fits, that is said up front."""
    constraint = Constraint("regex", "[a-z]+ and [a-z]{3,4}!")
    kept = plan(paradigm, Edit("X and Y!", "", ((0, 1), (6, 7))), constraint=constraint)
    assert kept.spans is not None
    assert kept.exact
    for source in (Edit("X or Y!", "", ((0, 1),)), Edit("X and Y!", "", ((0, 1),))):
        field = refused(LimitExceeded, paradigm, source=source, constraint=constraint)
        assert field == "edit.spans"
    short = Sampling(max_new_tokens=4)
    twice = {"source": Edit("X and Y!", "", ((0, 1), (6, 7))), "sampling": short}
    assert refused(LimitExceeded, paradigm, constraint=constraint, **twice) == "edit.spans"


def test_what_cannot_be_steered_is_judged() -> None:
    """Documents written in another way, answers after reasoning, too many spans."""
    number = Constraint("json_schema", '{"type":"object","properties":{"a":{"type":"integer"}}}')
    odd = plan(DIFFUSION, Edit('{ "a": 1 }', "", ((7, 8),)), constraint=number)
    thoughtful = plan(DIFFUSION, constraint=number, thinking=Thinking(enabled=True))
    spans = tuple((place, place + 1) for place in range(0, 18, 2))
    many = plan(DIFFUSION, Edit("a" * 18, "", spans), constraint=Constraint("regex", "a*"))
    for judged in (odd, thoughtful, many):
        assert judged.job.automaton is None
        assert judged.spans is None
        assert judged.check is not None
        assert not judged.exact


def test_drafts_of_a_judged_answer_are_refused() -> None:
    """They are shown of what an automaton keeps to its form, not of what may yet be thrown away."""
    constraint, drafts = Constraint("choice", options=("yes", "no")), Denoising(drafts=True)
    assert plan(DIFFUSION, constraint=constraint, denoising=drafts).job.drafts
    asked = {"constraint": constraint, "denoising": drafts, "thinking": Thinking(enabled=True)}
    assert refused(UnsupportedParameter, DIFFUSION, **asked) == "diffusion.drafts"


@pytest.mark.parametrize("source", [Infill("a", "b"), Edit("a", "b")])
def test_no_reasoning_before_infill_and_edit(source: Any) -> None:
    """Thinking on is refused where the answer cannot begin with reasoning; off is fine."""
    thinking = Thinking(enabled=True)
    field = refused(UnsupportedParameter, AUTOREGRESSIVE, source=source, thinking=thinking)
    assert field == "thinking.enabled"
    assert plan(AUTOREGRESSIVE, source, thinking=Thinking(enabled=False))


def test_a_gap_whose_length_stands_has_to_be_given_one() -> None:
    """A model that sees both sides fills just so many tokens; without a suffix it may end."""
    both_sides = planner(DIFFUSION, family="masked_diffusion")
    with pytest.raises(UnsupportedParameter) as caught:
        both_sides.plan(request(Infill("a", "b")), LIMITS)
    assert caught.value.violations[0].field == "sampling.max_new_tokens"
    given = request(Infill("a", "b"), sampling=Sampling(max_new_tokens=5))
    assert both_sides.plan(given, LIMITS).job.max_new_tokens == 5
    assert both_sides.plan(request(Infill("a", "")), LIMITS).job.max_new_tokens == 64


def test_spans_whose_length_stands_keep_the_one_they_had() -> None:
    """Unless the caller says how many tokens there are for all of them; an empty one gets one."""
    both_sides = planner(DIFFUSION, family="masked_diffusion")
    source = Edit("one two three", "", ((0, 3), (4, 4), (8, 13)))
    unsaid = both_sides.plan(request(source), LIMITS)
    assert (unsaid.shares, unsaid.job.max_new_tokens) == ((3, 1, 5), 3)
    told = both_sides.plan(request(source, sampling=Sampling(max_new_tokens=12)), LIMITS)
    assert (told.shares, told.job.max_new_tokens) == ((), 12)
    with pytest.raises(LimitExceeded) as caught:
        both_sides.plan(request(Edit("x" * 99, "", ((0, 99),))), LIMITS)
    assert caught.value.violations[0].field == "edit.spans"


def test_infill_leaves_room_for_its_answer() -> None:
    """A long infill is cut so that max_new_tokens fit behind it."""
    asked = plan(DIFFUSION, Infill("x" * 999, "y"), sampling=Sampling(max_new_tokens=40))
    assert len(asked.job.prompt_ids) == 256 - 40
    assert asked.truncated
    unset = plan(DIFFUSION, Infill("x" * 999, "y"))
    assert unset.job.max_new_tokens == 64


def test_group_lowers_limits_and_cannot_raise_what_is_set_aside() -> None:
    """Hot limits replace the settings'; slots and context only shrink."""
    hot = LIMITS.under(
        Group(max_new_tokens=8, max_steps=2, queue_length=0, max_batch_size=99, max_context=9999)
    )
    assert (hot.max_new_tokens, hot.max_steps, hot.queue_length) == (8, 2, 0)
    assert (hot.max_batch_size, hot.max_context) == (4, 256)
    assert LIMITS.under(Group(max_batch_size=2, max_context=100)).max_context == 100
    assert LIMITS.under(Group()) == LIMITS
