"""What may be stored: the rules that readers of the keys apply as well."""

from __future__ import annotations

from collections.abc import Mapping

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from services.chassis.errors import FieldViolation, InvalidRequest
from services.chassis.ids import FORM, is_id
from services.router.rules import PolicyError, compile_policy

SHARE_LIMIT = 1000
MOVING_VERSIONS = frozenset({"latest"})
"""Names that would mean another version tomorrow."""

_GROUP_RANGES: Mapping[str, tuple[int, int]] = {
    "max_steps": (1, 1024),
    "max_batch_size": (1, 1024),
    "max_concurrency": (1, 100_000),
    "queue_length": (0, 100_000),
    "max_new_tokens": (1, 2**31 - 1),
    "max_context": (1, 2**31 - 1),
}


def check_ids(**ids: str) -> None:
    """Raises InvalidRequest naming each field whose value is no id."""
    _raise([FieldViolation(field, FORM) for field, value in ids.items() if not is_id(value)])


def check_version(model: str, version: str) -> None:
    """Raises InvalidRequest where the two cannot name an immutable version."""
    check_ids(model=model, version=version)
    if version in MOVING_VERSIONS:
        raise InvalidRequest.field("version", f"{version!r} would not stay the same version")


def check_policy(policy: routing_pb2.Policy) -> tuple[str, ...]:
    """Raises InvalidRequest where the router would refuse the policy; returns warnings."""
    try:
        compile_policy(policy)
    except PolicyError as error:
        raise InvalidRequest.field("policy", str(error)) from None
    return tuple(_unreachable(policy))


def _unreachable(policy: routing_pb2.Policy) -> list[str]:
    """Rules after one that matches everything."""
    everything = routing_pb2.Match()
    for position, rule in enumerate(policy.rules):
        if rule.match == everything:
            after = policy.rules[position + 1 :]
            return [f"rule {later.name} never matches: {rule.name} does first" for later in after]
    return []


def check_shares(shares: Mapping[str, int]) -> None:
    """Raises InvalidRequest where ``shares`` cannot divide a model's traffic."""
    violations = [
        FieldViolation(f"shares[{version}]", FORM) for version in shares if not is_id(version)
    ]
    violations += [
        FieldViolation(f"shares[{version}]", f"must be 0 to {SHARE_LIMIT}")
        for version, share in shares.items()
        if not 0 <= share <= SHARE_LIMIT
    ]
    if not any(shares.values()):
        violations.append(FieldViolation("shares", "at least one must be over 0"))
    _raise(violations)


def check_group(group: config_pb2.Group) -> None:
    """Raises InvalidRequest naming every field out of its range."""
    names = {"group": group.group, "model": group.model, "version": group.version}
    violations = [
        FieldViolation(f"group.{field}", FORM)
        for field, value in names.items()
        if not is_id(value) and (value or field == "group")
    ]
    for field, (low, high) in _GROUP_RANGES.items():
        if group.HasField(field) and not low <= getattr(group, field) <= high:
            violations.append(FieldViolation(f"group.{field}", f"must be {low} to {high}"))
    if group.HasField("confidence_threshold") and not 0 < group.confidence_threshold <= 1:
        violations.append(FieldViolation("group.confidence_threshold", "must be over 0, to 1"))
    _raise(violations)


def _raise(violations: list[FieldViolation]) -> None:
    if violations:
        text = "; ".join(f"{violation.field}: {violation.description}" for violation in violations)
        raise InvalidRequest(text, violations=tuple(violations))
