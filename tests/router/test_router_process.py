"""A real router process with a real etcd and workers on real sockets."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

from prometheus_client.parser import text_string_to_metric_families

from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1 import routing_pb2
from services.chassis.errors import EngineFailure
from services.chassis.registry import Registry
from services.cli.etcd_process import EtcdProcess
from tests.etcd import etcdctl
from tests.eventually import eventually
from tests.fakes.worker import DRAINING, FakeWorker
from tests.router.calls import (
    CODE,
    LOST,
    NO_WORKER,
    ONE_SECOND,
    SLOW,
    TASK,
    drained,
    failure,
    outcome,
    outcomes,
    summary,
)
from tests.router.processes import Router, joined, register, worker_process

BAD_VALUES = (
    b'{"a":1,}',
    b"",
    b"null",
    b'"{}"',
    b"\xef\xbb\xbf{}",
    b'{"unknown": {}}',
    b'{"v1": "30"}',
)


async def test_traffic_share_acts_within_200_ms(
    router: Router, registry: Registry, workers: list[FakeWorker], etcd: EtcdProcess
) -> None:
    """A share put by etcdctl decides the very next calls."""
    await joined(router, registry, *workers)
    delays = []
    for wanted in ("w1", "w2") * 3:
        shares = {"v1": int(wanted == "w1"), "v2": int(wanted == "w2")}
        await asyncio.to_thread(etcdctl, etcd, "put", "/braid/traffic/m", json.dumps(shares))
        started = time.monotonic()
        await eventually(partial(only, router, wanted))
        delays.append(time.monotonic() - started)
    assert statistics.median(delays) < 0.2


async def only(router: Router, node_id: str) -> bool:
    """Whether a few calls in turn all reach this node."""
    return await outcomes(router, 3) == {node_id}


async def test_weight_zero_takes_no_new_calls(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """Weight 0 ends new calls to a node within a second; its running stream finishes."""
    await joined(router, registry, workers[0])
    stream = router.client.GenerateStream(ONE_SECOND, timeout=20)
    await stream.read()
    await registry.put("/braid/weights/w1", b"0")

    async def refused() -> bool:
        return await outcome(router) == NO_WORKER

    await eventually(refused, 1.0)
    assert (await drained(stream))[-1].finished.served_by.node_id == "w1"


async def test_shares_hold_whatever_the_replicas(router: Router, registry: Registry) -> None:
    """A canary's tenth stays a tenth beside three and six nodes; without it no call fails."""
    stable = [FakeWorker(f"s{index}") for index in range(6)]
    canary = FakeWorker("canary", version="v2")
    for worker in (*stable, canary):
        await worker.start()
    await registry.put("/braid/traffic/m", b'{"v1": 90, "v2": 10}')
    await joined(router, registry, *stable[:3], canary)
    assert abs(await share_of_canary(router) - 0.1) < 0.04
    await joined(router, registry, *stable[3:])
    assert abs(await share_of_canary(router) - 0.1) < 0.04
    await canary.stop()
    assert await share_of_canary(router) == 0
    for worker in stable:
        await worker.stop()


async def share_of_canary(router: Router, calls: int = 1000) -> float:
    """Part of the calls that the canary answers; none may fail."""
    counted: Counter[str] = Counter()

    async def caller() -> None:
        for _ in range(calls // 10):
            counted[await router.node_of(CODE)] += 1

    await asyncio.gather(*(caller() for _ in range(10)))
    return counted["canary"] / calls


async def test_bad_json_in_every_key(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """A broken value in any key is listed, warned of once, and changes nothing."""
    worker = workers[0]
    await joined(router, registry, worker)
    keys = ("/braid/policy", "/braid/traffic/m", "/braid/weights/w1", worker.key)
    for bad in BAD_VALUES:
        for key in keys:
            revision = await registry.put(key, bad)
        await eventually(partial(rejects, router, *keys, revision=revision))
        assert await router.serving()
        assert await outcome(router) == "w1"
    warned = Counter(str(line["key"]) for line in router.logged("value_rejected"))
    assert warned == dict.fromkeys(keys, len(BAD_VALUES))


async def test_corrected_values_apply_without_restart(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """Good values after bad ones are taken, a trailing newline notwithstanding."""
    worker = workers[0]
    await joined(router, registry, worker)
    good = {
        "/braid/policy": b'{"default": {"groups": [{"group": "diffusion"}]}}\n',
        "/braid/traffic/m": b'{"v1": 1}\n',
        "/braid/weights/w1": b"5\n",
        worker.key: worker.value + b"\n",
    }
    for key in good:
        await registry.put(key, b"{")
    await eventually(lambda: rejects(router, *good))
    assert 'braid_router_config_valid{kind="policy"} 0.0' in await router.scrape()
    for key, value in good.items():
        await registry.put(key, value)
    await eventually(lambda: rejects(router), 2.0)
    assert not (await router.table()).policy_built_in
    assert (await router.nodes())["w1"].weight == 5
    assert 'braid_router_config_valid{kind="policy"} 1.0' in await router.scrape()


async def rejects(router: Router, *keys: str, revision: int = 0) -> bool:
    """Whether exactly the values of these keys are not taken, the newest of ``revision``."""
    rejected = (await router.table()).rejected
    newest = max((value.revision for value in rejected), default=0)
    return {value.key for value in rejected} == set(keys) and newest >= revision


async def test_new_worker_takes_traffic_soon(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """A worker gets its first call within 2 s of its registration."""
    assert await outcome(router) == NO_WORKER
    await register(registry, workers[0])

    async def answered() -> bool:
        return await outcome(router) == "w1"

    await eventually(answered, 2.0)


async def test_draining_worker_gets_no_new_calls(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """A worker that drains finishes its stream, while new calls go elsewhere."""
    await joined(router, registry, workers[0])
    stream = router.client.GenerateStream(ONE_SECOND, timeout=20)
    await stream.read()
    await joined(router, registry, workers[1])
    await workers[0].report(DRAINING)

    async def passed_over() -> bool:
        return not await router.routable("w1")

    await eventually(passed_over)
    await registry.delete(workers[0].key)
    assert await outcomes(router, 20) == {"w2"}
    assert (await drained(stream))[-1].finished.served_by.node_id == "w1"
    assert set(await router.nodes()) == {"w2"}


async def test_killed_worker_costs_only_its_own_calls(
    router: Router, registry: Registry, workers: list[FakeWorker], etcd: EtcdProcess
) -> None:
    """kill -9 ends the calls on that worker as lost; every later call succeeds."""
    with worker_process("victim", etcd) as victim:
        await eventually(lambda: router.routable("victim"), 20)
        stream = router.client.GenerateStream(SLOW, timeout=20)
        await stream.read()
        await joined(router, registry, workers[0])
        victim.kill()
        assert summary(await failure(drained(stream))) == LOST
        assert await outcomes(router, 30) == {"w1"}


async def test_returned_worker_serves_within_3_s(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """During an outage calls fail at once; a worker back on its port serves within 3 s."""
    worker = workers[0]
    await joined(router, registry, worker)
    await worker.stop()
    for _ in range(15):
        started = time.monotonic()
        assert await outcome(router) in (NO_WORKER, LOST)
        assert time.monotonic() - started < 1
        await asyncio.sleep(0.1)
    await worker.start(worker.port, worker.admin_port)

    async def answered() -> bool:
        return await outcome(router) == "w1"

    await eventually(answered, 3.0)


async def test_names_do_not_match_by_prefix(router: Router, registry: Registry) -> None:
    """``llada`` is never answered by ``llada2``, and the end of ``w1`` is not that of ``w10``."""
    one, ten = FakeWorker("w1", model="llada"), FakeWorker("w10", model="llada2")
    for worker in (one, ten):
        await worker.start()
    await joined(router, registry, one, ten)
    named = pb.GenerateRequest(task=TASK, prompt="x", model="llada")
    assert await outcomes(router, 100, named) == {"w1"}
    await one.report(DRAINING)
    await registry.delete(one.key)

    async def forgotten() -> bool:
        return set(await router.nodes()) == {"w10"}

    await eventually(forgotten)
    assert await outcome(router, named) == "NOT_FOUND UNKNOWN_MODEL"
    for worker in (one, ten):
        await worker.stop()


async def test_strange_names_add_no_series(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """Random models and request ids leave the number of metric series as it is."""
    await joined(router, registry, workers[0])
    names = ["n" * 10_000, 'quote"', "line\nbreak", "👍", *(f"m{index}" for index in range(300))]
    unknown = [
        pb.GenerateRequest(task=TASK, prompt="x", model=name, request_id=f"id-{index}")
        for index, name in enumerate(names)
    ]
    assert await outcome(router, unknown[0]) == "NOT_FOUND UNKNOWN_MODEL"
    before = series(await router.scrape())
    assert {await outcome(router, one) for one in unknown} == {"NOT_FOUND UNKNOWN_MODEL"}
    started = time.monotonic()
    assert series(await router.scrape()) == before
    assert time.monotonic() - started < 1
    assert await outcome(router) == "w1"


def series(page: str) -> set[str]:
    """Name and labels of every series of ours on a metrics page."""
    return {
        f"{sample.name}{sorted(sample.labels.items())}"
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("braid_")
    }


async def test_explain_decides_like_a_call(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """Explain names the rule, the candidates and the chances without sending anything."""
    await registry.put("/braid/traffic/m", b'{"v1": 95, "v2": 5}')
    await joined(router, registry, *workers)
    explained = await router.admin.Explain(routing_pb2.ExplainRequest(request=CODE), timeout=5)
    assert (explained.rule, explained.group) == ("code-completion", "diffusion")
    assert dict(explained.version_shares) == {"v1": 0.95, "v2": 0.05}
    assert {candidate.node_id for candidate in explained.candidates} == {"w1", "w2"}
    assert not workers[0].received
    bad = routing_pb2.ExplainRequest(request=pb.GenerateRequest(prompt="x"))
    error = await failure(router.admin.Explain(bad, timeout=5))
    assert summary(error) == "INVALID_ARGUMENT INVALID_REQUEST"


async def test_smoke_test_reaches_a_node_without_traffic(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """SmokeTest asks a node of weight 0, with a request of its own where none is given."""
    await joined(router, registry, *workers)
    await registry.put("/braid/weights/w2", b"0")

    async def weightless() -> bool:
        return (await router.nodes())["w2"].weight == 0

    await eventually(weightless)
    for request in (CODE, None):
        asked = routing_pb2.SmokeTestRequest(node_id="w2", request=request)
        answer = await router.admin.SmokeTest(asked, timeout=5)
        assert (answer.response.text, answer.response.served_by.node_id) == ("ok", "w2")
        assert answer.latency.ToMicroseconds() > 0
    missing = routing_pb2.SmokeTestRequest(node_id="nobody")
    error = await failure(router.admin.SmokeTest(missing, timeout=5))
    assert summary(error) == "NOT_FOUND NOT_FOUND"
    assert await outcomes(router, 10) == {"w1"}


async def test_smoke_test_of_a_node_that_fails(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """A smoke test ends with the very status that the node gave."""

    async def refuse(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        raise EngineFailure("broke")
        yield ""

    await joined(router, registry, *workers)
    workers[0].script = refuse
    error = await failure(
        router.admin.SmokeTest(routing_pb2.SmokeTestRequest(node_id="w1"), timeout=5)
    )
    assert (summary(error), error.details()) == ("INTERNAL ENGINE_FAILURE", "broke")


async def test_traffic_is_shown_by_version(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """GetTraffic counts the calls of each version with their latencies."""
    await registry.put("/braid/traffic/figures", b'{"v1": 1}')
    workers[0].record.model = "figures"
    await joined(router, registry, workers[0])
    named = pb.GenerateRequest(task=TASK, prompt="x", model="figures")
    assert await outcomes(router, 5, named) == {"w1"}
    request = routing_pb2.GetTrafficRequest(model="figures")
    (shown,) = (await router.admin.GetTraffic(request, timeout=5)).versions
    assert (shown.version, shown.count, dict(shown.errors)) == ("v1", 5, {})
    assert shown.p50.ToMicroseconds() > 0


async def test_table_shows_what_is_in_force(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """GetRoutingTable shows nodes with their statuses, policy, traffic and freshness."""
    await registry.put("/braid/traffic/m", b'{"v1": 95, "v2": 5}')
    await joined(router, registry, *workers)
    table = await router.table()
    assert (table.policy_built_in, table.stale, table.age.ToNanoseconds()) == (True, False, 0)
    assert dict(table.traffic["m"].shares) == {"v1": 95, "v2": 5}
    assert [(node.node.node_id, node.status.slots) for node in table.nodes] == [
        ("w1", 4),
        ("w2", 4),
    ]


async def test_log_line_of_a_call_has_no_content(
    router: Router, registry: Registry, workers: list[FakeWorker]
) -> None:
    """Each call is one line with its decision and outcome, never with its text."""
    await joined(router, registry, workers[0])
    request = pb.GenerateRequest(task=TASK, prompt="SECRET-123\n{}", request_id="r1")
    assert await outcome(router, request) == "w1"
    (line,) = await eventually(lambda: router.logged("request_finished"))
    shown = {name: line[name] for name in ("request_id", "task", "node", "rule", "code", "reason")}
    assert shown == {
        "request_id": "r1",
        "task": "code_completion",
        "node": "w1",
        "rule": "code-completion",
        "code": "OK",
        "reason": "rule",
    }
    assert "SECRET" not in router.process.log
