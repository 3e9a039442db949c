"""What the router reads from the registry, each value checked before it is taken."""

from __future__ import annotations

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from braid.worker.v1 import worker_pb2
from services.chassis import documents
from services.chassis.documents import DocumentError
from services.chassis.group_record import check_group
from services.chassis.keys import CALLERS, GROUPS, MODELS, NODES, POLICY, TRAFFIC, WEIGHTS, ids_of
from services.chassis.last_good import LastGood, Rejected
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.security.caller_record import parse_caller
from services.router.node import check_record
from services.router.policy_compiler import compile_policy
from services.router.table import PolicyInForce


class RegistryValues:
    """The last good value of every key that routing depends on."""

    def __init__(self) -> None:
        self.nodes = LastGood(NODES, parse_node)
        self.weights = LastGood(WEIGHTS, parse_weight)
        self.traffic = LastGood(TRAFFIC, parse_traffic)
        self.groups = LastGood(GROUPS, parse_group)
        self.policy = LastGood(POLICY, parse_policy)
        self.callers = LastGood(CALLERS, parse_caller)

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Values that were not taken, by kind and key."""
        return (
            *self.policy.rejected,
            *self.traffic.rejected,
            *self.weights.rejected,
            *self.groups.rejected,
            *self.callers.rejected,
            *self.nodes.rejected,
        )


def parse_node(key: str, data: bytes) -> worker_pb2.Node:
    """A worker's record; raises ValueError."""
    group, node_id = _ids(key, NODES, 2)
    record = documents.parse(key, data, worker_pb2.Node)
    check_record(record, group, node_id)
    return record


def parse_weight(key: str, data: bytes) -> int:
    """An operator's override of a weight; raises ValueError."""
    _ids(key, WEIGHTS)
    return documents.parse_weight(key, data)


def parse_traffic(key: str, data: bytes) -> dict[str, int]:
    """Shares by version, at least one; all 0 take the model out. Raises ValueError."""
    _ids(key, TRAFFIC)
    shares = documents.parse_shares(key, data)
    if not shares:
        raise DocumentError(key, "names no version")
    return shares


def parse_group(key: str, data: bytes) -> config_pb2.Group:
    """A group's runtime parameters; raises ValueError or InvalidRequest."""
    _ids(key, GROUPS)
    record = documents.parse(key, data, config_pb2.Group)
    check_group(record)
    return record


def parse_policy(key: str, data: bytes) -> PolicyInForce:
    """The routing policy, compiled; raises ValueError."""
    message = documents.parse(key, data, routing_pb2.Policy)
    return PolicyInForce(message, compile_policy(message))


def touches(changes: Changes, prefix: str) -> bool:
    """Whether anything under ``prefix`` changed."""
    return any(entry.key.startswith(prefix) for entry in changes.put) or any(
        key.startswith(prefix) for key in changes.deleted
    )


def recorded_models(state: MirrorState) -> frozenset[str]:
    """Models with a version on record."""
    ids = (ids_of(key, MODELS, 2) for key in state.entries)
    return frozenset(found[0] for found in ids if found)


def _ids(key: str, prefix: str, count: int = 1) -> tuple[str, ...]:
    ids = ids_of(key, prefix, count)
    if ids is None:
        raise DocumentError(key, f"is not {prefix} and {count} id(s)")
    return ids
