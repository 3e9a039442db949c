"""Rollouts and figures for tests."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from braid.config.v1 import config_pb2
from services.config_center.rollout import steps
from services.config_center.rollout.steps import Figures

VERSIONS = {"v1": 1000, "v2": 0}


def plan(*percents: int, hold_s: int = 0) -> config_pb2.RolloutPlan:
    """Steps of these shares."""
    hold = Duration(seconds=hold_s)
    made = config_pb2.RolloutPlan(
        steps=[config_pb2.RolloutStep(percent=percent, hold=hold) for percent in percents]
    )
    made.guards.min_sample = 100
    return made


def rollout(step: int = 1, *percents: int, hold_s: int = 0) -> config_pb2.Rollout:
    """v2 of model demo beside v1, in a step that began at 0 s."""
    return config_pb2.Rollout(
        model="demo",
        candidate="v2",
        stable="v1",
        plan=plan(*(percents or (5, 100)), hold_s=hold_s),
        state=steps.RUNNING if step else steps.SMOKE,
        step=step,
        step_started=steps.timestamp(0),
        old_shares=VERSIONS,
    )


def sample(
    count: int, errors: int = 0, invalid: int = 0, p95: float = 1.0
) -> config_pb2.VersionSample:
    """Figures of one version, each call with a constraint."""
    return config_pb2.VersionSample(
        count=count, errors=errors, judged=count, invalid=invalid, p95_seconds=p95
    )


GOOD = Figures(sample(200), sample(4000), "")
FAILING = Figures(sample(400, errors=40), sample(4000), "")
