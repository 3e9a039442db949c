"""Names of the keys in etcd.

Every prefix ends in a slash, so that ``llada`` never finds ``llada2``; every part
is checked, so that no id can reach into another's folder.
"""

from __future__ import annotations

from services.chassis.errors import InvalidRequest
from services.chassis.ids import FORM, is_id

ROOT = "/braid/"
NODES = "/braid/nodes/"
ROUTERS = "/braid/routers/"
WEIGHTS = "/braid/weights/"
MODELS = "/braid/models/"
RETIRED = "/braid/retired/"
GROUPS = "/braid/groups/"
POLICY = "/braid/policy"
TRAFFIC = "/braid/traffic/"
CALLERS = "/braid/callers/"
ROLLOUTS = "/braid/rollouts/"
CHANGES = "/braid/changes/"
ROLLOUT_LEADER = "/braid/leaders/rollouts"


def node_key(group: str, node_id: str) -> str:
    """The leased record of a node; raises InvalidRequest for a bad id."""
    return f"{NODES}{_part('group', group)}/{_part('node_id', node_id)}"


def router_key(node_id: str) -> str:
    """The leased record of a router."""
    return ROUTERS + _part("node_id", node_id)


def weight_key(node_id: str) -> str:
    """The operator's override of a node's weight."""
    return WEIGHTS + _part("node_id", node_id)


def model_key(model: str, version: str) -> str:
    """The immutable record of a version."""
    return f"{MODELS}{_part('model', model)}/{_part('version', version)}"


def model_prefix(model: str) -> str:
    """Where all versions of one model lie."""
    return f"{MODELS}{_part('model', model)}/"


def retired_key(model: str, version: str) -> str:
    """The record of a version that was retired; its name is not used again."""
    return f"{RETIRED}{_part('model', model)}/{_part('version', version)}"


def group_key(group: str) -> str:
    """The hot runtime parameters of a group."""
    return GROUPS + _part("group", group)


def traffic_key(model: str) -> str:
    """The shares of a model's versions."""
    return TRAFFIC + _part("model", model)


def caller_key(caller_id: str) -> str:
    """The record of a caller."""
    return CALLERS + _part("caller_id", caller_id)


def rollout_key(model: str) -> str:
    """The state of a model's rollout."""
    return ROLLOUTS + _part("model", model)


def change_key(revision: int) -> str:
    """One audit record; zero-padded, so that the keys' order is the order in time."""
    return f"{CHANGES}{revision:020d}"


def ids_of(key: str, prefix: str, count: int = 1) -> tuple[str, ...] | None:
    """The ``count`` ids that follow ``prefix`` in ``key``; None where the key has another form."""
    if not key.startswith(prefix):
        return None
    ids = tuple(key.removeprefix(prefix).split("/"))
    return ids if len(ids) == count and all(map(is_id, ids)) else None


def _part(field: str, value: str) -> str:
    if not is_id(value):
        raise InvalidRequest.field(field, FORM)
    return value
