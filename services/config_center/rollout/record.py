"""Records of rollouts: which values they may have."""

from __future__ import annotations

from braid.config.v1 import config_pb2
from services.chassis import documents
from services.chassis.documents import DocumentError
from services.chassis.errors import InvalidRequest
from services.chassis.ids import FORM, is_id
from services.chassis.keys import ROLLOUTS, ids_of
from services.chassis.violations import Violations
from services.config_center.rollout.steps import PERCENTS

MAX_STEPS = 32
MAX_SMOKE = 16
_DAY_S = 24 * 3600.0


def parse_rollout(key: str, data: bytes) -> config_pb2.Rollout:
    """The record under a key in etcd; raises DocumentError."""
    record = documents.parse(key, data, config_pb2.Rollout)
    if ids_of(key, ROLLOUTS) != (record.model,):
        raise DocumentError(key, "is not the key of its model")
    try:
        check_rollout(record)
    except InvalidRequest as error:
        raise DocumentError(key, error.message) from None
    return record


def whole_plan(plan: config_pb2.RolloutPlan) -> config_pb2.RolloutPlan:
    """The plan with the default steps where it names none."""
    whole = config_pb2.RolloutPlan()
    whole.CopyFrom(plan)
    if not whole.steps:
        whole.steps.extend(config_pb2.RolloutStep(percent=percent) for percent in PERCENTS)
    return whole


def check_rollout(record: config_pb2.Rollout) -> None:
    """Raises InvalidRequest with every bad field."""
    faults = Violations()
    for field in ("model", "candidate", "stable"):
        faults.require(is_id(getattr(record, field)), field, FORM)
    faults.require(record.candidate != record.stable, "candidate", "is the stable version")
    _check_plan(record.plan, faults)
    faults.integer("step", record.step, 0, len(record.plan.steps))
    faults.require(record.state != 0, "state", "must be set")
    faults.require(bool(record.old_shares), "old_shares", "must name a version")
    moving = record.state == config_pb2.ROLLOUT_STATE_RUNNING
    faults.require(not moving or record.step > 0, "step", "must be over 0 while running")
    faults.raise_if_any()


def _check_plan(plan: config_pb2.RolloutPlan, faults: Violations) -> None:
    faults.integer("plan.steps", len(plan.steps), 1, MAX_STEPS)
    faults.integer("plan.smoke", len(plan.smoke), 0, MAX_SMOKE)
    before = 0
    for index, step in enumerate(plan.steps):
        faults.integer(f"plan.steps[{index}].percent", step.percent, before + 1, 100)
        before = step.percent
        hold_s = step.hold.ToNanoseconds() / 1e9
        faults.number(f"plan.steps[{index}].hold", hold_s, 0, 30 * _DAY_S)
    faults.require(before == 100, "plan.steps", "the last must be 100 percent")
    if plan.HasField("smoke_timeout"):
        timeout_s = plan.smoke_timeout.ToNanoseconds() / 1e9
        faults.number("plan.smoke_timeout", timeout_s, 0, _DAY_S, over=True)
    _check_guards(plan.guards, faults)


def _check_guards(guards: config_pb2.RolloutGuards, faults: Violations) -> None:
    for field in ("error_rate_increase", "invalid_rate_increase"):
        if guards.HasField(field):
            faults.number(f"plan.guards.{field}", getattr(guards, field), 0, 1)
    if guards.HasField("latency_ratio"):
        faults.number("plan.guards.latency_ratio", guards.latency_ratio, 1, 100, over=True)
    if guards.HasField("min_sample"):
        faults.integer("plan.guards.min_sample", guards.min_sample, 1, 1_000_000)
