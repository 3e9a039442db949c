"""What a choice and a change of the table cost in a large mesh.

``python -m tests.benchmarks.bench_choose``

Thousands of nodes and a hundred rules with every kind of condition, no sockets:
the pure part of the router, in one process. CPU time, so that a busy machine does not
count.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from random import Random

import structlog
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import GroupShare, Match, Policy, Route, Rule
from services.chassis.entries import Entry
from services.chassis.mirror_state import Changes, MirrorState
from services.router.features import Features
from services.router.links import Links
from services.router.live_table import LiveTable
from services.router.node_watch import NodeWatches
from services.router.policy import choose
from tests.router.tables import node

GROUPS, NODES_EACH, RULES = 50, 100, 100
ROUNDS, CALLS = 7, 5000
CHANGES_MADE = 50


def policy() -> Policy:
    """Rules of each kind in turn, all of which a request has to be compared with."""
    matches = (
        lambda i: Match(tasks=[pb.TASK_CHAT], models=[f"m{i}"]),
        lambda i: Match(labels={"team": f"t{i}"}),
        lambda i: Match(callers=[f"c{i}"]),
        lambda i: Match(tasks=[pb.TASK_CODE_COMPLETION], min_prompt_bytes=10_000 + i),
        lambda i: Match(constraints=["json_schema"], max_new_tokens=i + 1),
        lambda i: Match(latency_budget_at_most=Duration(nanos=1 + i)),
    )
    rules = [
        Rule(name=f"r{i}", match=matches[i % len(matches)](i), route=route(i)) for i in range(RULES)
    ]
    return Policy(rules=rules, default=route(0))


def route(index: int) -> Route:
    """Two groups that share, and one to fall back to."""
    groups = [f"g{(index + step) % GROUPS}" for step in range(3)]
    shares = [GroupShare(group=group, share=50) for group in groups[:2]]
    return Route(groups=shares, fallback=groups[2:])


def entries() -> Iterator[Entry]:
    """The whole registry: nodes of two versions, the policy, and traffic shares."""
    for group in range(GROUPS):
        for index in range(NODES_EACH):
            it = node(f"n{group}-{index}", f"g{group}", version=f"v{index % 2 + 1}")
            yield Entry(it.key, as_json(it.record), 1)
    yield Entry("/braid/policy", as_json(policy()), 1)
    yield Entry("/braid/traffic/m", b'{"v1": 90, "v2": 10}', 1)


def as_json(message: Message) -> bytes:
    """A message as it lies under a key."""
    return json.dumps(MessageToDict(message, preserving_proto_field_name=True)).encode()


def requests() -> list[Features]:
    """Requests that no rule but the default takes, with and without a session."""
    return [
        Features(
            task,
            labels={"session": f"s{index}"} if index % 2 else {"team": "x"},
            constraint=constraint,
            prompt_bytes=500,
            max_new_tokens=500,
            latency_budget_s=5.0,
            needs=frozenset({"seed"}),
        )
        for index, (task, constraint) in enumerate(
            (task, constraint)
            for task in (pb.TASK_CODE_COMPLETION, pb.TASK_CHAT, pb.TASK_MATH)
            for constraint in ("", "json_schema")
        )
    ]


def choosing_us(live: LiveTable) -> float:
    """Median over rounds of what one choice takes, in microseconds."""
    asked, rng, taken = requests(), Random(0), []
    for _ in range(ROUNDS):
        started = time.process_time()
        for index in range(CALLS):
            choose(asked[index % len(asked)], live.table, rng)
        taken.append((time.process_time() - started) / CALLS)
    return statistics.median(taken[1:]) * 1e6


def changing_ms(live: LiveTable, listed: list[Entry]) -> list[float]:
    """What applying one node's change takes, in milliseconds, each time."""
    taken = []
    for revision in range(2, CHANGES_MADE + 2):
        entry = listed[revision * 7]
        record = json.loads(entry.value)
        record["weight"] = revision
        changed = Entry(entry.key, json.dumps(record).encode(), revision)
        started = time.process_time()
        live.apply(MirrorState(revision=revision), Changes(put=(changed,)))
        taken.append((time.process_time() - started) * 1e3)
    return taken


async def main() -> None:
    """Lists, chooses and changes, and prints what each took."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    listed = list(entries())
    async with asyncio.TaskGroup() as tasks:
        links = Links(tasks)
        live = LiveTable(NodeWatches(tasks, links), links)
        started = time.process_time()
        live.apply(MirrorState(revision=1), Changes(put=tuple(listed), relisted=True))
        listing_s = time.process_time() - started
        print(f"{len(live.table.nodes)} nodes in {GROUPS} groups, {RULES} rules")
        print(f"choose             {choosing_us(live):8.1f} us")
        print(f"relist             {listing_s:8.2f} s")
        changes = sorted(changing_ms(live, listed))
        print(f"one change, median {statistics.median(changes):8.2f} ms, most {changes[-1]:.2f} ms")
        print(f"memory of a table  {memory_mib(listed, tasks):8.1f} MiB")
        live.close()


def memory_mib(listed: list[Entry], tasks: asyncio.TaskGroup) -> float:
    """What another table of the same registry takes."""
    tracemalloc.start()
    links = Links(tasks)
    live = LiveTable(NodeWatches(tasks, links), links)
    live.apply(MirrorState(revision=1), Changes(put=tuple(listed), relisted=True))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return taken / 2**20


if __name__ == "__main__":
    asyncio.run(main())
