"""Taking nodes that fail out of the choice for a while, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from services.router.node import TableNode
from services.router.node_health import Phase
from services.router.table import RoutingTable

log = structlog.get_logger()


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """Then it will not."""


Later = Callable[[float, Callable[[], None]], Timer]
"""Calls a function after so many seconds."""


class Standings(Protocol):
    """The table, and a way to change how far one of its nodes is trusted."""

    @property
    def table(self) -> RoutingTable:
        """The table in force."""

    def mark(self, key: str, ejected: str) -> None:
        """Says why a node takes no calls; empty where it does."""


def serving(table: RoutingTable, group: str) -> list[TableNode]:
    """Nodes of the group that take calls, or would but for their ejection."""
    return [
        node
        for versions in table.groups.get(group, {}).values()
        for variant in versions.values()
        for node in variant.nodes.values()
        if not node.reason and node.weight
    ]


def may_eject(node: TableNode, table: RoutingTable) -> bool:
    """Whether the group and the node's model can spare it.

    Half of the group at most, and never the last node that serves the model.
    """
    nodes = serving(table, node.record.group)
    out = sum(1 for one in nodes if not one.trusted)
    others = any(
        one.key != node.key and one.trusted and one.record.model == node.record.model
        for one in nodes
    )
    return others and 2 * (out + 1) <= len(nodes)


def to_return(table: RoutingTable, groups: Iterable[str]) -> list[TableNode]:
    """Nodes that are out and that their groups cannot spare any more, since others have left."""
    returned = []
    for group in groups:
        nodes = serving(table, group)
        trusted = [node for node in nodes if node.trusted]
        served = {node.record.model for node in trusted}
        for node in nodes:
            needed = 2 * len(trusted) < len(nodes) or node.record.model not in served
            if not node.trusted and needed:
                returned.append(node)
                trusted.append(node)
                served.add(node.record.model)
    return returned


class Ejections:
    """Judges nodes by what their calls come to. Used from one event loop.

    ``on_eject`` is told the group of each node that is ejected.
    """

    def __init__(
        self,
        standings: Standings,
        on_eject: Callable[[str], None],
        later: Later,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._standings = standings
        self._on_eject = on_eject
        self._later = later
        self._clock = clock
        self._timers: dict[str, Timer] = {}
        self._reviewed: RoutingTable | None = None

    def succeeded(self, node: TableNode) -> None:
        """A call was answered."""
        node.health.succeeded()
        if node.health.phase is Phase.HALF_OPEN:
            self._trust(node)

    def undecided(self, node: TableNode) -> None:
        """A call ended in a way that says nothing about its node."""
        node.health.probed = False

    def failed(self, node: TableNode) -> None:
        """A call ended in a way that its node is to blame for."""
        health = node.health
        health.failed()
        if health.phase is Phase.HALF_OPEN:
            self._eject(node)
        elif health.phase is Phase.TRUSTED and health.suspect:
            known = self._standings.table.nodes.get(node.key)
            if known is not None and may_eject(known, self._standings.table):
                self._eject(node)

    def review(self) -> None:
        """After a change of the table: forgets nodes that left, returns those that are needed."""
        table = self._standings.table
        if table is self._reviewed:
            return
        self._reviewed = table
        for key in [key for key in self._timers if key not in table.nodes]:
            self._timers.pop(key).cancel()
        groups = {table.nodes[key].record.group for key in self._timers}
        for node in to_return(table, groups):
            if not node.trusted:
                self._trust(node)

    def close(self) -> None:
        """Forgets every ejection."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _eject(self, node: TableNode) -> None:
        seconds = node.health.eject(self._clock())
        log.warning("node_ejected", node=node.record.node_id, seconds=seconds)
        self._on_eject(node.record.group)
        self._forget(node)
        self._timers[node.key] = self._later(seconds, lambda: self._half_open(node))
        self._standings.mark(node.key, f"ejected for {seconds:g} s: its calls failed")

    def _half_open(self, node: TableNode) -> None:
        node.health.half_open()
        log.info("node_half_open", node=node.record.node_id)
        self._standings.mark(node.key, "")

    def _trust(self, node: TableNode) -> None:
        node.health.trust(self._clock())
        log.info("node_trusted", node=node.record.node_id)
        self._forget(node)
        self._standings.mark(node.key, "")

    def _forget(self, node: TableNode) -> None:
        timer = self._timers.pop(node.key, None)
        if timer is not None:
            timer.cancel()
