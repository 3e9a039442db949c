"""Figures of calls and of their copies as messages."""

from __future__ import annotations

from collections import Counter

from google.protobuf.duration_pb2 import Duration

from braid.routing.v1 import routing_pb2
from services.chassis.errors import InvalidRequest
from services.router.comparison import Comparison, Comparisons, Pair, Side
from services.router.latencies import Latencies
from services.router.traffic_figures import LONGEST_S, TrafficFigures, Version, VersionFigures

DEFAULT_WINDOW_S = 300.0
OK = "OK"


def traffic_report(
    request: routing_pb2.GetTrafficRequest, traffic: TrafficFigures, comparisons: Comparisons
) -> routing_pb2.GetTrafficResponse:
    """What became of the latest calls; raises InvalidRequest for a window that is not kept."""
    window_s = DEFAULT_WINDOW_S
    if request.HasField("window"):
        window_s = request.window.ToNanoseconds() / 1e9
    if not 0 < window_s <= LONGEST_S:
        raise InvalidRequest.field("window", f"must be over 0 and at most {LONGEST_S:g} s")
    versions = traffic.of_last(window_s, request.model)
    mirrors = comparisons.of_last(window_s, request.model)
    return routing_pb2.GetTrafficResponse(
        versions=[_version(version, versions[version]) for version in sorted(versions)],
        mirrors=[_mirror(pair, mirrors[pair]) for pair in sorted(mirrors)],
    )


def _version(version: Version, figures: VersionFigures) -> routing_pb2.VersionTraffic:
    return routing_pb2.VersionTraffic(
        model=version[0],
        version=version[1],
        count=figures.codes.total(),
        errors=_errors(figures.codes),
        p50=_quantile(figures.latencies, 0.5),
        p95=_quantile(figures.latencies, 0.95),
        p99=_quantile(figures.latencies, 0.99),
        judged=figures.judged,
        valid_share=figures.valid / figures.judged if figures.judged else 0.0,
    )


def _mirror(pair: Pair, comparison: Comparison) -> routing_pb2.MirrorTraffic:
    group, model, version, original_model, original_version = pair
    return routing_pb2.MirrorTraffic(
        group=group,
        count=comparison.copy.codes.total(),
        copy=_side(model, version, comparison.copy),
        original=_side(original_model, original_version, comparison.original),
    )


def _side(model: str, version: str, side: Side) -> routing_pb2.MirrorSide:
    answered = max(side.codes[OK], 1)
    return routing_pb2.MirrorSide(
        model=model,
        version=version,
        errors=_errors(side.codes),
        valid_share=side.valid / max(side.codes.total(), 1),
        mean_tokens=side.tokens / answered,
        p50=_quantile(side.latencies, 0.5),
        p95=_quantile(side.latencies, 0.95),
    )


def _errors(codes: Counter[str]) -> dict[str, int]:
    return {code: count for code, count in codes.items() if code != OK}


def _quantile(latencies: Latencies, part: float) -> Duration:
    duration = Duration()
    duration.FromMicroseconds(round(latencies.quantile(part) * 1e6))
    return duration
