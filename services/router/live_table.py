"""The table in force: the registry and the status streams, brought together."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import structlog

from braid.config.v1 import config_pb2
from braid.worker.v1 import worker_pb2
from services.chassis.keys import GROUPS, MODELS, NODES, TRAFFIC, WEIGHTS, weight_key
from services.chassis.last_good import LastGood, Rejected
from services.chassis.mirror_state import Changes, MirrorState
from services.router.links import Links
from services.router.load import NodeLoad
from services.router.node import DEFAULT_WEIGHT, TableNode, abilities_of, standing_of
from services.router.node_watch import NodeWatches
from services.router.registry_values import RegistryValues, recorded_models, touches
from services.router.table import PolicyInForce, RoutingTable

UNSEEN = "no status yet"
_LOOK_AGAIN_S = 0.02

log = structlog.get_logger()


class LiveTable:
    """Turns each piece of news into a new table, in one assignment.

    A node takes calls when its record is there and its status stream says that
    it accepts them; one without a stream, by its record alone. A record that
    vanishes while its node still answers is not believed: registries lose all
    leases at once after an outage, and a node that leaves says so first.
    """

    def __init__(self, watches: NodeWatches, links: Links) -> None:
        self.table = RoutingTable(PolicyInForce.default())
        self.loaded = False
        self._watches = watches
        self._links = links
        self._values = RegistryValues()
        self._addresses: Counter[str] = Counter()
        self._listeners: list[Callable[[], None]] = []

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Values in the registry that were not taken."""
        return self._values.rejected

    @property
    def callers(self) -> LastGood[config_pb2.Caller]:
        """Records of callers in force, for those who ask who calls."""
        return self._values.callers

    def subscribe(self, listener: Callable[[], None]) -> None:
        """``listener`` is called after each piece of news, statuses included."""
        self._listeners.append(listener)

    def mark(self, key: str, ejected: str) -> None:
        """Says why a node is given no calls; empty where it is."""
        node = self.table.nodes.get(key)
        if node is not None:
            self.table = self.table.changed([replace(node, ejected=ejected)])
            self._tell()

    def apply(self, state: MirrorState, changes: Changes) -> None:
        """Takes what one revision changed, as a unit. Subscribes to the mirror."""
        table = replace(self.table, revision=state.revision)
        if self._values.policy.update(changes):
            in_force = next(iter(self._values.policy.values.values()), None)
            table = replace(table, policy=in_force or PolicyInForce.default())
        if self._values.traffic.update(changes):
            shares = self._values.traffic.values
            table = replace(
                table, traffic={key.removeprefix(TRAFFIC): shares[key] for key in shares}
            )
        self._values.callers.update(changes)
        if self._values.groups.update(changes):
            records = self._values.groups.values
            table = replace(
                table, records={key.removeprefix(GROUPS): records[key] for key in records}
            )
        if changes.relisted or touches(changes, MODELS):
            table = replace(table, recorded_models=recorded_models(state))
        self.table = self._with_nodes(table, changes)
        self.loaded = True
        self._tell()

    def seen(self, key: str, status: worker_pb2.NodeStatus) -> None:
        """A node sent a status."""
        node = self.table.nodes[key]
        node.load.report(status, time.monotonic())
        reason, alive = standing_of(status)
        self._stand(node, reason, alive=alive)
        self._tell()

    def lost(self, key: str, reason: str) -> None:
        """A node's status stream ended."""
        self._stand(self.table.nodes[key], reason, alive=False)
        self._tell()

    async def settled(self, timeout_s: float) -> None:
        """Returns when every node was seen or found lost, at the latest after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not any(node.reason == UNSEEN for node in self.table.nodes.values()):
                return
            await asyncio.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        """Forgets every node: ends the watches, and the links with their last calls."""
        self.table = self._without(self.table, self.table.nodes.values())

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _stand(self, node: TableNode, reason: str, *, alive: bool) -> None:
        if (node.reason, node.alive) == (reason, alive):
            return
        log.info("node_changed", node=node.record.node_id, reason=reason, routable=not reason)
        if node.lingering and not alive:
            self.table = self._without(self.table, [node])
        else:
            self.table = self.table.changed([replace(node, reason=reason, alive=alive)])

    def _with_nodes(self, table: RoutingTable, changes: Changes) -> RoutingTable:
        """The table after every change of a node's record or weight."""
        reweighted = self._values.weights.update(changes)
        if not self._values.nodes.update(changes) and not reweighted:
            return table
        put = [entry.key for entry in changes.put if entry.key.startswith(NODES)]
        deleted = [table.nodes[key] for key in changes.deleted if key in table.nodes]
        lingering = [replace(node, lingering=True) for node in deleted if node.alive]
        for node in lingering:
            log.warning("node_lingers", node=node.record.node_id)
        table = self._without(table, [node for node in deleted if not node.alive])
        table = table.changed([*self._updated(table, put), *lingering])
        return self._reweighted(table, changes) if reweighted else table

    def _updated(self, table: RoutingTable, keys: Iterable[str]) -> Iterable[TableNode]:
        records, weights = self._values.nodes.values, self._values.weights.values
        for key in keys:
            if key in records:
                node = self._node(key, records[key], table.nodes.get(key))
                yield replace(node, weight=_weight(node.record, weights))

    def _node(self, key: str, record: worker_pb2.Node, before: TableNode | None) -> TableNode:
        """The node of a record; what is known of it stays, unless the record is of another one."""
        if before is not None and _same_process(before, record):
            return replace(before, record=record, abilities=abilities_of(record), lingering=False)
        if before is not None:
            self._leave(before)
        self._addresses[record.address] += 1
        log.info("node_added", node=record.node_id, group=record.group, version=record.version)
        node = TableNode(
            key, record, DEFAULT_WEIGHT, "", NodeLoad(), abilities=abilities_of(record)
        )
        if not record.admin_address:
            return node
        self._watches.start(key, record, self)
        return replace(node, reason=UNSEEN)

    def _reweighted(self, table: RoutingTable, changes: Changes) -> RoutingTable:
        weights = self._values.weights.values
        keys = {entry.key for entry in changes.put}.union(changes.deleted)
        return table.changed(
            replace(node, weight=_weight(node.record, weights))
            for node in table.nodes.values()
            if WEIGHTS + node.record.node_id in keys
        )

    def _without(self, table: RoutingTable, nodes: Iterable[TableNode]) -> RoutingTable:
        gone = list(nodes)
        for node in gone:
            log.info("node_removed", node=node.record.node_id)
            self._leave(node)
        return table.changed(gone=[node.key for node in gone]) if gone else table

    def _leave(self, node: TableNode) -> None:
        """Stops watching a node; its link closes with the last call on it."""
        self._watches.stop(node.key)
        address = node.record.address
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
            self._links.retire(address)


def _weight(record: worker_pb2.Node, overrides: Mapping[str, int]) -> int:
    own = record.weight if record.HasField("weight") else DEFAULT_WEIGHT
    return overrides.get(weight_key(record.node_id), own)


def _same_process(before: TableNode, record: worker_pb2.Node) -> bool:
    """Whether a new record can only be of the process that is known already.

    One that answers may register anew at will; for one that does not, a new
    epoch is worth a new look at once.
    """
    known = before.record
    if (known.address, known.admin_address) != (record.address, record.admin_address):
        return False
    return before.alive or known.epoch == record.epoch
