"""What a rollout does next, by its record, the figures and the time alone."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.config.v1 import config_pb2
from services.config_center.rollout import steps
from services.config_center.rollout.evidence import breach, least_increase, limits_of, wilson
from services.config_center.rollout.steps import Action, Figures, next_step, shares_of
from tests.config_center.rollouts import FAILING, GOOD, rollout, sample

COUNTS = st.integers(0, 5000)
LIMITS = limits_of(config_pb2.RolloutGuards())


@st.composite
def samples(draw: st.DrawFn) -> config_pb2.VersionSample:
    count = draw(COUNTS)
    return sample(
        count,
        errors=draw(st.integers(0, count)),
        invalid=draw(st.integers(0, count)),
        p95=draw(st.floats(0.001, 10)),
    )


FIGURES = st.builds(Figures, samples(), samples(), st.sampled_from([None, "", "INTERNAL"]))


@given(FIGURES, st.floats(0, 59))
def test_nothing_goes_on_before_its_time(figures: Figures, now_s: float) -> None:
    """Whatever the figures, a step lasts as long as the plan says, or ends by an abort."""
    step = next_step(rollout(1, hold_s=60), figures, now_s)
    assert step.action is not Action.ADVANCE


@given(FIGURES, st.floats(0, 1e6))
def test_nothing_goes_on_without_its_sample(figures: Figures, now_s: float) -> None:
    """A candidate with fewer calls than the plan needs is not promoted."""
    figures.candidate.count = min(figures.candidate.count, 99)
    figures.candidate.errors = min(figures.candidate.errors, figures.candidate.count)
    step = next_step(rollout(), figures, now_s)
    assert step.action is not Action.ADVANCE


@given(samples(), st.floats(0, 1e6))
def test_a_candidate_like_the_stable_version_is_never_aborted(
    figures: config_pb2.VersionSample, now_s: float
) -> None:
    """Equal figures are no evidence against a candidate, however bad they are."""
    step = next_step(rollout(), Figures(figures, figures), now_s)
    assert step.action is not Action.ABORT


@given(FIGURES, st.floats(0, 1e6))
@pytest.mark.parametrize("state", [steps.PAUSED, steps.DONE, steps.ABORTED])
def test_only_what_moves_is_moved(
    state: config_pb2.RolloutState, figures: Figures, now_s: float
) -> None:
    """A rollout that is paused or over stays as it is."""
    resting = steps.in_state(rollout(), state, "", 0.0)
    assert next_step(resting, figures, now_s).action is Action.WAIT


@given(COUNTS, COUNTS)
def test_bounds_hold_the_proportion(first: int, second: int) -> None:
    """A proportion lies between its bounds, and these between 0 and 1."""
    hits, count = sorted((first, second))
    low, high = wilson(hits, count)
    assert 0 <= low <= high <= 1
    if count:
        assert low - 1e-12 <= hits / count <= high + 1e-12


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_increase_is_never_overstated(a: int, b: int, c: int, d: int) -> None:
    """The bound of an increase is at most the increase that was seen."""
    (hits, count), (base, base_count) = sorted((a, b)), sorted((c, d))
    seen = hits / count - base / base_count if count and base_count else 0.0
    assert least_increase(hits, count, base, base_count) <= seen + 1e-12


def test_wilson_by_hand() -> None:
    """18 of 36 at three standard errors: 0.5 -+ 3 / 1.25 x sqrt(0.25 / 36 + 0.25 / 144)."""
    low, high = wilson(18, 36)
    assert (low, high) == pytest.approx((0.276393, 0.723607), abs=1e-6)


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        (sample(400, errors=40), "error rate"),
        (sample(400, invalid=40), "invalid answers"),
        (sample(400, p95=2.0), "latency"),
        (sample(99, p95=2.0), ""),
        (sample(400, errors=1, invalid=4, p95=1.3), ""),
    ],
)
def test_breaches(candidate: config_pb2.VersionSample, told: str) -> None:
    """Failing, invalid and slow versions are told apart from ordinary noise."""
    found = breach(candidate, sample(4000), LIMITS)
    assert found.startswith(told) if told == "error rate" else told in found
    assert bool(found) == bool(told)


def test_good_versions_seldom_look_bad() -> None:
    """With 1 % of errors on both sides, looked at 60 times, under 1 in 20 is aborted."""
    rng = Random(1)
    aborted = 0
    for _ in range(40):
        candidate, stable = sample(0), sample(0)
        for _ in range(60):
            for side, calls in ((candidate, 5), (stable, 95)):
                side.count += calls
                side.errors += sum(rng.random() < 0.01 for _ in range(calls))
            if breach(candidate, stable, LIMITS):
                aborted += 1
                break
    assert aborted <= 2


def test_failing_version_is_caught() -> None:
    """3 % of failures are found within 2000 calls, 20 of 20 times."""
    rng = Random(2)
    for _ in range(20):
        failed = sum(rng.random() < 0.03 for _ in range(2000))
        assert breach(sample(2000, errors=failed), sample(2000), LIMITS)


def test_smoke_comes_first() -> None:
    """Without smoke tests passed there is no step; in time they end the rollout."""
    first = rollout(0)
    failed = Figures(smoke="a-1: INTERNAL")
    assert next_step(first, failed, 299.0).action is Action.WAIT
    assert next_step(first, failed, 300.0).action is Action.ABORT
    assert next_step(first, GOOD, 0.0).action is Action.ADVANCE


def test_last_step_is_judged_by_the_step_before() -> None:
    """Where the stable version has no traffic left, what it had is compared with."""
    last = steps.advanced(rollout(1), "", 0.0, sample(4000))
    assert last.step == 2
    figures = Figures(FAILING.candidate, sample(0))
    assert next_step(last, figures, 0.0).action is Action.ABORT


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(0, 1000), min_size=1))
@pytest.mark.parametrize("percent", [1, 25, 100])
def test_candidate_gets_its_part(percent: int, old: dict[str, int]) -> None:
    """The candidate has its percent, and all shares together are whole."""
    if not any(old.values()):
        old["a"] = 1
    record = rollout(1, percent)
    record.old_shares.clear()
    record.old_shares.update({**old, "v2": 0})
    shares = shares_of(record)
    assert shares["v2"] == percent * 10
    assert sum(shares.values()) == 1000
    assert min(shares.values()) >= 0


def test_abort_means_the_old_shares() -> None:
    """Whatever the step, an abort has the shares from before."""
    aborted = steps.in_state(rollout(2), steps.ABORTED, "", 0.0)
    assert shares_of(aborted) == {"v1": 1000, "v2": 0}
