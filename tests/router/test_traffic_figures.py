"""Figures of the latest calls: counts, quantiles, validity, and what falls away."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from braid.routing.v1.routing_pb2 import GetTrafficRequest
from services.chassis.errors import InvalidRequest
from services.router.comparison import Comparisons, Outcome
from services.router.latencies import Latencies, merged
from services.router.traffic_figures import LONGEST_S, SLOT_S, TrafficFigures
from services.router.traffic_report import traffic_report

OK = grpc.StatusCode.OK
SECONDS = st.lists(st.floats(1e-3, 300), min_size=1, max_size=50)


@given(SECONDS, st.sampled_from([0.5, 0.95, 0.99]))
def test_quantile_is_close(seconds: list[float], part: float) -> None:
    """A quantile is within 5 % of the one that sorting gives."""
    latencies = Latencies()
    for one in seconds:
        latencies.note(one)
    rank = max(-int(-part * len(seconds) // 1), 1)
    assert latencies.quantile(part) == pytest.approx(sorted(seconds)[rank - 1], rel=0.05)


def test_merged_latencies() -> None:
    """Latencies of several slots count as if they were of one."""
    low, high = Latencies(), Latencies()
    for _ in range(9):
        low.note(0.01)
    high.note(10.0)
    assert merged([low, high]).quantile(0.9) == pytest.approx(0.01, rel=0.05)
    assert merged([low, high]).quantile(1.0) == pytest.approx(10, rel=0.05)
    assert merged([]).quantile(0.5) == 0


class Clock:
    """Time in the test's hand."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_figures_of_a_version() -> None:
    """Calls count by version and code; validity counts constrained calls alone."""
    figures = TrafficFigures(Clock())
    v1 = ("m", "v1")
    failed = grpc.StatusCode.FAILED_PRECONDITION
    figures.note(v1, OK, "", 0.1, constrained=True)
    figures.note(v1, OK, "", 0.1, constrained=False)
    figures.note(v1, failed, "CONSTRAINT_NOT_MET", 0.1, constrained=True)
    figures.note(v1, grpc.StatusCode.UNAVAILABLE, "WORKER_LOST", 9.0, constrained=True)
    figures.note(("other", "v1"), OK, "", 0.1, constrained=False)
    response = traffic_report(GetTrafficRequest(model="m"), figures, Comparisons())
    (shown,) = response.versions
    assert (shown.model, shown.version, shown.count) == ("m", "v1", 4)
    assert dict(shown.errors) == {"FAILED_PRECONDITION": 1, "UNAVAILABLE": 1}
    assert (shown.judged, shown.valid_share) == (2, 0.5)
    assert shown.p99.ToTimedelta().total_seconds() == pytest.approx(0.1, rel=0.05)


def test_old_calls_fall_away() -> None:
    """A window takes the calls of its time; nothing is kept for longer than the longest one."""
    clock = Clock()
    figures = TrafficFigures(clock)
    figures.note(("m", "v1"), OK, "", 0.1, constrained=False)
    clock.now += 60
    figures.note(("m", "v1"), OK, "", 0.1, constrained=False)

    def count(window_s: float) -> int:
        return sum(it.codes.total() for it in figures.of_last(window_s).values())

    assert (count(10), count(120)) == (1, 2)
    clock.now += LONGEST_S + SLOT_S
    assert count(LONGEST_S) == 0


@pytest.mark.parametrize("seconds", [0, -1, 601])
def test_window_that_is_not_kept(seconds: int) -> None:
    """A window out of range is refused by name."""
    request = GetTrafficRequest(window=Duration(seconds=seconds))
    with pytest.raises(InvalidRequest, match="window"):
        traffic_report(request, TrafficFigures(), Comparisons())


def test_comparison_shows_both_sides() -> None:
    """Calls and their copies are shown side by side, by where the copies went."""
    comparisons = Comparisons(Clock())
    pair = ("canary", "m", "v2", "m", "v1")
    comparisons.note(pair, Outcome("OK", True, 10, 0.1), Outcome("OK", False, 20, 0.2))
    comparisons.note(pair, Outcome("OK", True, 10, 0.1), Outcome("UNAVAILABLE", False, 0, 0.1))
    (mirror,) = traffic_report(GetTrafficRequest(), TrafficFigures(), comparisons).mirrors
    assert (mirror.group, mirror.count) == ("canary", 2)
    assert (mirror.original.version, mirror.original.valid_share) == ("v1", 1.0)
    assert (mirror.copy.version, mirror.copy.valid_share) == ("v2", 0.0)
    assert (mirror.original.mean_tokens, mirror.copy.mean_tokens) == (10, 20)
    assert dict(mirror.copy.errors) == {"UNAVAILABLE": 1}
