"""Everything between a call's arrival and its node, put together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Protocol

from prometheus_client import CollectorRegistry

from services.router.admission import Admission
from services.router.dispatch import Dispatcher
from services.router.door import Door
from services.router.ejection import Ejections, Standings
from services.router.group_metrics import GroupMetrics
from services.router.links import Links
from services.router.metrics import RouterMetrics
from services.router.mirroring import Mirroring
from services.router.passage import Journal, TableSource
from services.router.proxy import InferenceProxy
from services.router.retry_budget import RetryBudget
from services.router.sender import Sender, Ways
from services.router.traffic_figures import TrafficFigures


class Tables(TableSource, Standings, Protocol):
    """The table in force, and a say in how far its nodes are trusted."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a call without a deadline lives, and how many may wait for a group."""

    default_deadline_s: float
    queue_length: int


class Inference:
    """The proxy with what it stands on; ``review`` is to be called after each piece of news."""

    def __init__(
        self,
        tables: Tables,
        links: Links,
        tasks: asyncio.TaskGroup,
        metrics: CollectorRegistry,
        door: Door,
        bounds: Bounds,
        rng: Random,
    ) -> None:
        counts, later = RouterMetrics(metrics), asyncio.get_running_loop().call_later
        self.traffic = TrafficFigures()
        self.admission = Admission(tables, counts, rng, bounds.queue_length)
        self.mirroring = Mirroring(tasks, tables, links, self.admission, counts, rng)
        self._ejections = Ejections(tables, counts.ejected, later)
        GroupMetrics(tables, self.admission, metrics)
        ways = Ways(
            tables=tables,
            links=links,
            admission=self.admission,
            ejections=self._ejections,
            budget=RetryBudget(),
            mirroring=self.mirroring,
            metrics=counts,
            rng=rng,
        )
        dispatcher = Dispatcher(ways, Sender(ways, bounds.default_deadline_s))
        self.proxy = InferenceProxy(dispatcher, Journal(counts, tables, self.traffic), door)

    def review(self) -> None:
        """Takes notice of a new table or a new status."""
        self._ejections.review()
        self.admission.review()

    def close(self) -> None:
        """Ends what goes on beside the calls."""
        self.mirroring.close()
        self._ejections.close()
