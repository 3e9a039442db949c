"""One worker node as the router sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from braid.inference.v1 import inference_pb2
from braid.worker.v1 import worker_pb2
from services.chassis.ids import FORM, is_id
from services.router.features import DIFFUSION
from services.router.load import NodeLoad
from services.router.node_health import NodeHealth, Phase

DEFAULT_WEIGHT = 100
WEIGHT_LIMIT = 1000
PARADIGMS = frozenset({inference_pb2.PARADIGM_DIFFUSION, inference_pb2.PARADIGM_AUTOREGRESSIVE})

LEAVING = frozenset(
    {
        worker_pb2.NODE_STATE_DRAINING,
        worker_pb2.NODE_STATE_STOPPED,
        worker_pb2.NODE_STATE_FAILED,
    }
)
"""States after which a node without a registry key is gone."""


class NodeRecordError(ValueError):
    """A node's record cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class TableNode:
    """A node with everything a choice needs; ``key`` is its registry key.

    ``reason`` says why it takes no calls and is empty where it does.
    ``abilities`` are its capabilities, and "diffusion" where it denoises.
    ``alive``: its status stream answers and does not say that it is leaving.
    ``lingering``: its registry key is gone all the same. ``ejected`` says that its
    calls failed and is empty where it is given calls.
    """

    key: str
    record: worker_pb2.Node
    weight: int
    reason: str
    load: NodeLoad
    abilities: frozenset[str]
    alive: bool = False
    lingering: bool = False
    ejected: str = ""
    health: NodeHealth = field(default_factory=NodeHealth)

    @property
    def routable(self) -> bool:
        """Whether it takes calls."""
        return not (self.reason or self.ejected)

    @property
    def trusted(self) -> bool:
        """Whether its calls give no reason to be careful with it."""
        return self.health.phase is Phase.TRUSTED

    @property
    def diffusion(self) -> bool:
        """Whether its work is counted in blocks x steps."""
        return self.record.paradigm == inference_pb2.PARADIGM_DIFFUSION


def standing_of(status: worker_pb2.NodeStatus) -> tuple[str, bool]:
    """Reason and ``alive`` of a node that sent ``status``."""
    if status.state == worker_pb2.NODE_STATE_READY and status.accepting:
        return "", True
    state = worker_pb2.NodeState.Name(status.state).removeprefix("NODE_STATE_").lower()
    words = "not accepting" if status.state == worker_pb2.NODE_STATE_READY else state
    reason = f"{words}: {status.reason}" if status.reason else words
    return reason, status.state not in LEAVING


def abilities_of(record: worker_pb2.Node) -> frozenset[str]:
    """What a node can do, in the words of Features.needs."""
    own = {DIFFUSION} if record.paradigm == inference_pb2.PARADIGM_DIFFUSION else set()
    return frozenset(own.union(record.capabilities))


def check_record(record: worker_pb2.Node, group: str, node_id: str) -> None:
    """Raises NodeRecordError unless the record can be used under its key."""
    if (record.group, record.node_id) != (group, node_id):
        raise NodeRecordError("group and node_id must be those of the key")
    for name in ("group", "node_id", "model", "version"):
        if not is_id(getattr(record, name)):
            raise NodeRecordError(f"{name} {FORM}")
    if record.weight > WEIGHT_LIMIT:
        raise NodeRecordError(f"weight must be 0 to {WEIGHT_LIMIT}")
    if record.paradigm not in PARADIGMS:
        raise NodeRecordError("paradigm must be set")
    _check_address("address", record.address)
    if record.admin_address:
        _check_address("admin_address", record.admin_address)


def _check_address(field: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise NodeRecordError(f"{field} must be host:port")
