"""How much work waits on one node, as far as this router can know."""

from __future__ import annotations

from braid.worker.v1 import worker_pb2

REPORT_LAG_S = 0.02
"""A report may have left its node this long before it arrived here."""

NOMINAL_STEP_S = 0.02
"""Duration of a forward pass on a node that has not measured one."""

SPARE = 4
"""For each so many slots one call more is sent, so that no slot stands idle in between."""


LEARNT_AT_ONCE, MOST_USED = 0.05, 2.0
"""Weight of one call in what is learnt of all, and the most that one can say."""


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
        self.reserved = 0
        """Places given to calls that are about to start."""
        self.part_used = 1.0
        """Part of the time a call is expected to take that calls of late really took."""
        self._pending = 0.0
        self._seconds_per_forward = NOMINAL_STEP_S
        self._unreported: dict[Ticket, None] = {}
        self._unreported_forwards = 0.0
        self._others = 0
        """Calls there that this router did not send."""
        self._room = 0
        """Calls it takes at once; 0: not known."""

    @property
    def drain_seconds(self) -> float:
        """Expected time until the work that waits there would be done."""
        return (self._pending + self._unreported_forwards) * self._seconds_per_forward

    @property
    def pending_forwards(self) -> float:
        """Forward passes that the calls there still need."""
        return self._pending + self._unreported_forwards

    @property
    def saturated(self) -> bool:
        """Whether a further call would wait there rather than run."""
        return 0 < self._room <= self.in_flight + self.reserved + self._others

    @property
    def forwards_per_second(self) -> float:
        """How fast it gets through the work of all its slots."""
        return 1 / self._seconds_per_forward

    @property
    def waiting_forwards(self) -> float:
        """Work of the calls that wait for a slot there."""
        if self.status is None:
            return self._unreported_forwards
        calls = self.status.running + self.status.queued
        return self._pending * self.status.queued / max(calls, 1) + self._unreported_forwards

    @property
    def forwards_per_call(self) -> float:
        """Work that a call there has left, on average."""
        status = self.status
        return self._pending / max(status.running + status.queued, 1) if status else 0.0

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
        own = self.in_flight - len(self._unreported)
        self._others = max(status.running + status.queued - own, 0)
        self._room = status.slots + max(status.slots // SPARE, 1) if status.slots else 0

    def start(self, forwards: float, now: float) -> Ticket:
        """Counts a call that is sent there now."""
        ticket = Ticket(forwards, now)
        self.in_flight += 1
        self._unreported[ticket] = None
        self._unreported_forwards += forwards
        return ticket

    def learn(self, ticket: Ticket, now: float) -> None:
        """Takes a call that was answered now: answers are mostly shorter than they may be."""
        step_s = (self.status.step_seconds if self.status else 0.0) or NOMINAL_STEP_S
        part = min((now - ticket.started) / (max(ticket.forwards, 1.0) * step_s), MOST_USED)
        self.part_used += LEARNT_AT_ONCE * (part - self.part_used)

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
