"""How much work waits on one node, as far as this router can know."""

from __future__ import annotations

from braid.worker.v1 import worker_pb2

REPORT_LAG_S = 0.02
"""A report may have left its node this long before it arrived here."""

NOMINAL_STEP_S = 0.02
"""Duration of a forward pass on a node that has not measured one."""


class Ticket:
    """One call that this router has running on a node."""

    __slots__ = ("forwards", "started")

    def __init__(self, forwards: float, started: float) -> None:
        self.forwards = forwards
        self.started = started


class NodeLoad:
    """What a node last reported, and what was sent to it since.

    Lives as long as the node is known and is the one thing in a routing table
    that changes in place: it is written by calls and status streams and read by
    choices. Times are seconds of time.monotonic().
    """

    def __init__(self) -> None:
        self.status: worker_pb2.NodeStatus | None = None
        self.reported_at = 0.0
        self.in_flight = 0
        self._pending = 0.0
        self._seconds_per_forward = NOMINAL_STEP_S
        self._unreported: dict[Ticket, None] = {}
        self._unreported_forwards = 0.0

    @property
    def drain_seconds(self) -> float:
        """Expected time until the work that waits there would be done."""
        return (self._pending + self._unreported_forwards) * self._seconds_per_forward

    def report(self, status: worker_pb2.NodeStatus, now: float) -> None:
        """Takes a status; it holds the work of every call that had arrived when it was made."""
        self.status = status
        self.reported_at = now
        self._pending = status.pending_forwards
        step_s = status.step_seconds or NOMINAL_STEP_S
        self._seconds_per_forward = step_s / max(status.slots, 1)
        arrived_before = now - REPORT_LAG_S
        for ticket in list(self._unreported):
            if ticket.started > arrived_before:
                break
            self._forget(ticket)

    def start(self, forwards: float, now: float) -> Ticket:
        """Counts a call that is sent there now."""
        ticket = Ticket(forwards, now)
        self.in_flight += 1
        self._unreported[ticket] = None
        self._unreported_forwards += forwards
        return ticket

    def finish(self, ticket: Ticket) -> None:
        """Takes a call off again; once per ticket."""
        self.in_flight -= 1
        if ticket in self._unreported:
            self._forget(ticket)

    def _forget(self, ticket: Ticket) -> None:
        del self._unreported[ticket]
        self._unreported_forwards -= ticket.forwards
        if not self._unreported:
            self._unreported_forwards = 0.0
