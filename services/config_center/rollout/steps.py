"""What a rollout does next; pure functions of its record, the figures and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from google.protobuf.timestamp_pb2 import Timestamp

from braid.config.v1 import config_pb2
from services.config_center.rollout.evidence import breach, doubt, limits_of

WHOLE = 1000
HOLD_S = 60.0
SMOKE_TIMEOUT_S = 300.0
PERCENTS = (1, 5, 25, 50, 100)

SMOKE = config_pb2.ROLLOUT_STATE_SMOKE
RUNNING = config_pb2.ROLLOUT_STATE_RUNNING
PAUSED = config_pb2.ROLLOUT_STATE_PAUSED
DONE = config_pb2.ROLLOUT_STATE_DONE
ABORTED = config_pb2.ROLLOUT_STATE_ABORTED

ACTIVE = frozenset({SMOKE, RUNNING, PAUSED})
MOVING = frozenset({SMOKE, RUNNING})


class Action(Enum):
    """What to do."""

    WAIT = auto()
    ADVANCE = auto()
    ABORT = auto()


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, and why."""

    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What was seen since the step began: of both versions, and of the smoke tests.

    ``smoke`` says why they did not pass, empty where they did; None: not tried.
    """

    candidate: config_pb2.VersionSample = field(default_factory=config_pb2.VersionSample)
    stable: config_pb2.VersionSample = field(default_factory=config_pb2.VersionSample)
    smoke: str | None = None


def next_step(rollout: config_pb2.Rollout, figures: Figures, now_s: float) -> Step:
    """Goes on, waits, or aborts. ``now_s`` is the time since 1970."""
    lasted_s = now_s - rollout.step_started.ToNanoseconds() / 1e9
    if rollout.state == SMOKE:
        return _after_smoke(rollout, figures, lasted_s)
    if rollout.state != RUNNING:
        return Step(Action.WAIT, "")
    limits = limits_of(rollout.plan.guards)
    enough = figures.stable.count >= limits.min_sample
    stable = figures.stable if enough or not rollout.HasField("baseline") else rollout.baseline
    if fault := breach(figures.candidate, stable, limits):
        return Step(Action.ABORT, fault)
    if lasted_s < _hold_s(rollout.plan.steps[rollout.step - 1]):
        return Step(Action.WAIT, "its time is not over")
    if unsure := doubt(figures.candidate, stable, limits):
        return Step(Action.WAIT, unsure)
    return Step(Action.ADVANCE, f"{figures.candidate.count} calls without a breach")


def _after_smoke(rollout: config_pb2.Rollout, figures: Figures, lasted_s: float) -> Step:
    if figures.smoke == "":
        return Step(Action.ADVANCE, "smoke tests passed")
    plan = rollout.plan
    set_s = plan.smoke_timeout.ToNanoseconds() / 1e9
    if lasted_s >= (set_s if plan.HasField("smoke_timeout") else SMOKE_TIMEOUT_S):
        return Step(Action.ABORT, f"smoke tests: {figures.smoke or 'no router answers'}")
    return Step(Action.WAIT, figures.smoke or "")


def _hold_s(step: config_pb2.RolloutStep) -> float:
    return step.hold.ToNanoseconds() / 1e9 if step.HasField("hold") else HOLD_S


def advanced(
    rollout: config_pb2.Rollout, reason: str, now_s: float, stable: config_pb2.VersionSample
) -> config_pb2.Rollout:
    """One step further; behind the last one it is done."""
    moved = _copy(rollout, reason, now_s)
    if stable.count:
        moved.baseline.CopyFrom(stable)
    if rollout.step >= len(rollout.plan.steps):
        moved.state = DONE
    else:
        moved.state = RUNNING
        moved.step = rollout.step + 1
    return moved


def in_state(
    rollout: config_pb2.Rollout, state: config_pb2.RolloutState, reason: str, now_s: float
) -> config_pb2.Rollout:
    """The same step in another state; its time begins anew."""
    moved = _copy(rollout, reason, now_s)
    moved.state = state
    return moved


def resumed(rollout: config_pb2.Rollout, reason: str, now_s: float) -> config_pb2.Rollout:
    """Out of a pause, into the step it was in."""
    return in_state(rollout, RUNNING if rollout.step else SMOKE, reason, now_s)


def shares_of(rollout: config_pb2.Rollout) -> dict[str, int]:
    """The shares that a rollout's state calls for: of 1000, or the old ones."""
    if rollout.state == ABORTED:
        return dict(rollout.old_shares)
    percent = rollout.plan.steps[rollout.step - 1].percent if rollout.step else 0
    part = percent * WHOLE // 100
    return {**_rest(rollout.old_shares, rollout.candidate, WHOLE - part), rollout.candidate: part}


def _rest(old: Mapping[str, int], candidate: str, left: int) -> dict[str, int]:
    """``left`` among the other versions, in proportion to what they had."""
    others = {version: share for version, share in old.items() if version != candidate}
    total = max(sum(others.values()), 1)
    shares = {version: left * share // total for version, share in others.items()}
    if shares:
        shares[max(sorted(shares), key=lambda it: shares[it])] += left - sum(shares.values())
    return shares


def _copy(rollout: config_pb2.Rollout, reason: str, now_s: float) -> config_pb2.Rollout:
    moved = config_pb2.Rollout()
    moved.CopyFrom(rollout)
    moved.reason = reason
    moved.step_started.CopyFrom(timestamp(now_s))
    return moved


def timestamp(seconds: float) -> Timestamp:
    """A time since 1970 as a message."""
    stamp = Timestamp()
    stamp.FromNanoseconds(int(seconds * 1e9))
    return stamp
