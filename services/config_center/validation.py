"""What may be stored: the rules that readers of the keys apply as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from services.chassis.documents import MAX_WEIGHT
from services.chassis.errors import InvalidRequest
from services.chassis.ids import FORM, is_id, is_version
from services.chassis.violations import Violations
from services.router.policy_compiler import PolicyError, compile_policy
from services.router.policy_review import review_policy

MAX_PARENTS = 16


def check_ids(**ids: str) -> None:
    """Raises InvalidRequest naming each field whose value is no id."""
    faults = Violations()
    for field, value in ids.items():
        faults.require(is_id(value), field, FORM)
    faults.raise_if_any()


def check_version(model: str, version: str) -> None:
    """Raises InvalidRequest where the two cannot name an immutable version."""
    check_ids(model=model, version=version)
    if not is_version(version):
        raise InvalidRequest.field("version", f"{version!r} would not stay the same version")


def check_parents(parents: Sequence[config_pb2.ModelParent]) -> None:
    """Raises InvalidRequest naming each parent that could not be recorded."""
    faults = Violations()
    faults.integer("parents", len(parents), 0, MAX_PARENTS)
    for index, parent in enumerate(parents):
        for field in ("model", "version", "relation"):
            faults.require(is_id(getattr(parent, field)), f"parents[{index}].{field}", FORM)
    faults.raise_if_any()


def check_policy(policy: routing_pb2.Policy) -> tuple[str, ...]:
    """Raises InvalidRequest where the router would refuse the policy; returns warnings."""
    try:
        compile_policy(policy)
    except PolicyError as error:
        raise InvalidRequest.field("policy", str(error)) from None
    return tuple(f"rule {doubt.rule}: {doubt.description}" for doubt in review_policy(policy))


def check_shares(shares: Mapping[str, int]) -> None:
    """Raises InvalidRequest where ``shares`` cannot divide a model's traffic."""
    faults = Violations()
    for version, share in shares.items():
        faults.require(is_id(version), f"shares[{version}]", FORM)
        faults.integer(f"shares[{version}]", share, 0, MAX_WEIGHT)
    faults.require(any(shares.values()), "shares", "at least one must be over 0")
    faults.raise_if_any()


def check_limit(field: str, value: int, most: int) -> None:
    """Raises InvalidRequest where ``value`` is over ``most``; 0 stands for unset."""
    faults = Violations()
    faults.integer(field, value, 0, most)
    faults.raise_if_any()
