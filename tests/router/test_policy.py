"""Choosing: groups, fallbacks, version shares, sessions, weights and waiting."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import GroupShare, Policy, Route
from services.chassis.errors import NoWorkerAvailable, UnknownModel, UnsupportedParameter
from services.router.features import Features
from services.router.node import TableNode
from services.router.policy import Reason, choose
from services.router.table import RoutingTable
from tests.router.tables import code, node, table

Shares = dict[str, int]
SHARES = st.dictionaries(st.sampled_from(["v1", "v2", "v3"]), st.integers(0, 1000), min_size=1)


def versions(known: RoutingTable, features: Features, calls: int, seed: int = 0) -> Counter[str]:
    rng = Random(seed)
    return Counter(choose(features, known, rng).node.record.version for _ in range(calls))


def nodes_drawn(known: RoutingTable, calls: int = 2000) -> Counter[str]:
    rng = Random(0)
    return Counter(choose(code(), known, rng).node.record.node_id for _ in range(calls))


def replicas(version: str, count: int) -> list[TableNode]:
    return [node(f"{version}-{index}", version=version) for index in range(count)]


@pytest.mark.parametrize("replicas_of_v1", [1, 3, 6])
def test_shares_do_not_follow_replicas(replicas_of_v1: int) -> None:
    """A share of 10 is 10 % of the calls, whatever the number of nodes."""
    known = table(
        *replicas("v1", replicas_of_v1), *replicas("v2", 1), traffic={"m": {"v1": 90, "v2": 10}}
    )
    assert abs(versions(known, code(), 4000)["v2"] / 4000 - 0.10) < 0.02


def test_version_without_nodes_leaves_its_share() -> None:
    """With no node of a version that can serve, the others take its calls."""
    lost = node("w2", version="v2", reason="does not answer")
    known = table(node("w1"), lost, traffic={"m": {"v1": 10, "v2": 90}})
    assert versions(known, code(), 50) == {"v1": 50}


def test_version_not_named_gets_nothing() -> None:
    """Traffic shares that name other versions leave a version without calls."""
    known = table(node("w1"), node("w2", version="v2"), traffic={"m": {"v1": 1}})
    assert versions(known, code(), 50) == {"v1": 50}
    with pytest.raises(NoWorkerAvailable, match="no traffic share"):
        choose(code(), table(node("w2", version="v2"), traffic={"m": {"v1": 1}}), Random(0))


def test_all_shares_zero() -> None:
    """A model whose versions all have share 0 takes no call, and the refusal says why."""
    known = table(node("w1"), traffic={"m": {"v1": 0}})
    with pytest.raises(NoWorkerAvailable, match="no traffic share"):
        choose(code(), known, Random(0))


def test_versions_share_by_weight_without_traffic() -> None:
    """Without traffic shares the weights of the nodes are the shares."""
    known = table(node("w1", weight=300), node("w2", version="v2", weight=100))
    assert abs(versions(known, code(), 4000)["v2"] / 4000 - 0.25) < 0.03


@given(before=SHARES, after=SHARES, session=st.text(min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_session_moves_only_where_shares_grew(before: Shares, after: Shares, session: str) -> None:
    """A session keeps its version unless its share shrank against the new one's."""
    nodes = [node(version, version=version) for version in ("v1", "v2", "v3")]
    features = code(labels={"session": session})
    if not any(before.values()) or not any(after.values()):
        return
    old = choose(features, table(*nodes, traffic={"m": before}), Random(1)).node.record.version
    new = choose(features, table(*nodes, traffic={"m": after}), Random(2)).node.record.version
    if old != new:
        assert after.get(new, 0) * before[old] > before.get(new, 0) * after.get(old, 0)


def test_only_the_moved_share_of_sessions_moves() -> None:
    """From 95/5 to 85/15 a tenth of the sessions move, all of them to the grown version."""
    nodes = [node("w1"), node("w2", version="v2")]
    before = table(*nodes, traffic={"m": {"v1": 95, "v2": 5}})
    after = table(*nodes, traffic={"m": {"v1": 85, "v2": 15}})
    moves: Counter[tuple[str, str]] = Counter()
    for session in range(2000):
        features = code(labels={"session": f"s{session}"})
        old, new = (choose(features, known, Random(0)).node for known in (before, after))
        moves[old.record.version, new.record.version] += 1
    assert moves["v2", "v1"] == 0
    assert abs(moves["v1", "v2"] / 2000 - 0.10) < 0.025


@given(
    weights=st.lists(st.integers(0, 1000), min_size=1, max_size=8),
    pending=st.lists(st.floats(0, 1e6), min_size=8, max_size=8),
    seed=st.integers(0, 1000),
)
@settings(max_examples=200, deadline=None)
def test_never_a_node_of_weight_zero(weights: list[int], pending: list[float], seed: int) -> None:
    """A node of weight 0 is never chosen, and with no other the call fails."""
    known = table(*(node(f"w{i}", weight=w, pending=pending[i]) for i, w in enumerate(weights)))
    if any(weights):
        assert choose(code(), known, Random(seed)).node.weight > 0
    else:
        with pytest.raises(NoWorkerAvailable, match="weight is 0"):
            choose(code(), known, Random(seed))


def test_idle_nodes_share_by_weight() -> None:
    """Nodes on which nothing waits get calls in proportion to their weights."""
    drawn = nodes_drawn(table(node("w1", weight=300), node("w2", weight=100)))
    assert abs(drawn["w2"] / 2000 - 0.25) < 0.04


def test_busy_node_loses_against_idle_one() -> None:
    """Of two nodes the one on which less work waits is taken."""
    drawn = nodes_drawn(table(node("busy", pending=50), node("idle")))
    assert drawn == {"idle": 2000}


def test_best_of_two_of_many() -> None:
    """Among many the busiest is never taken, and the rest still spreads."""
    known = table(*(node(f"w{i}", pending=i) for i in range(5)))
    drawn = nodes_drawn(known)
    assert drawn["w4"] == 0
    assert drawn["w0"] > drawn["w1"] > drawn["w2"] > drawn["w3"] > 0


def test_light_node_is_not_overrun() -> None:
    """A node of small weight is not taken for being idle while a heavy one hardly works."""
    drawn = nodes_drawn(
        table(node("heavy", weight=1000, pending=1), node("light", weight=1, pending=0.5))
    )
    assert drawn["light"] < 20


def test_calls_of_this_router_count_before_the_next_report() -> None:
    """Work sent to a node weighs on it at once."""
    one, other = node("w1"), node("w2")
    one.load.start(forwards=10, now=1.0)
    assert nodes_drawn(table(one, other)) == {"w2": 2000}


def test_fallback_only_where_the_rule_says_so() -> None:
    """Code completion falls back to an AR node; an action does not."""
    known = table(node("w1", "ar"))
    decision = choose(code(needs=frozenset({"infill"})), known, Random(0))
    assert (decision.node.record.group, decision.reason) == ("ar", Reason.FALLBACK)
    with pytest.raises(NoWorkerAvailable, match="no node in diffusion"):
        choose(Features(pb.TASK_ACTION_CONTROL), known, Random(0))


def test_fallback_needs_the_capability() -> None:
    """A node of the fallback group without the capability is not taken."""
    known = table(node("w1", "ar", capabilities=()))
    with pytest.raises(UnsupportedParameter) as raised:
        choose(code(needs=frozenset({"infill"})), known, Random(0))
    assert raised.value.violations[0].field == "infill"


def test_denoising_parameters_need_a_diffusion_node() -> None:
    """A chat with denoising parameters goes past the AR group."""
    known = table(node("w1", "ar"), node("w2", "diffusion"))
    features = Features(pb.TASK_CHAT, needs=frozenset({"diffusion"}))
    assert choose(features, known, Random(0)).node.record.node_id == "w2"


def test_groups_share_by_the_rule() -> None:
    """A route with two groups splits calls by their shares, and an empty one leaves its share."""
    policy = Policy(
        default=Route(groups=[GroupShare(group="a", share=3), GroupShare(group="b", share=1)])
    )
    known = table(node("w1", "a"), node("w2", "b"), policy=policy)
    assert abs(nodes_drawn(known)["w2"] / 2000 - 0.25) < 0.04
    assert nodes_drawn(table(node("w2", "b"), policy=policy)) == {"w2": 2000}


def test_model_names_are_whole_names() -> None:
    """``llada`` never finds ``llada2``."""
    known = table(node("w1", model="llada"), *(node(f"x{i}", model="llada2") for i in range(5)))
    rng = Random(0)
    chosen = {choose(code(model="llada"), known, rng).node.record.model for _ in range(200)}
    assert chosen == {"llada"}


def test_named_model_is_found_outside_the_rule() -> None:
    """A caller that names a model gets it from whichever groups serve it, by version share."""
    known = table(
        node("w1", "x", model="special"),
        node("w2", "y", model="special", version="v2"),
        node("w3"),
        traffic={"special": {"v1": 90, "v2": 10}},
    )
    assert abs(versions(known, code(model="special"), 4000)["v2"] / 4000 - 0.10) < 0.02


def test_unknown_model() -> None:
    """A model that neither a node nor a record has is not found."""
    with pytest.raises(UnknownModel):
        choose(code(model="nobody"), table(node("w1")), Random(0))


def test_no_node_at_all() -> None:
    """An empty table answers at once, with a hint when to retry."""
    with pytest.raises(NoWorkerAvailable) as raised:
        choose(code(), table(), Random(0))
    assert raised.value.retry_after_s


def test_avoided_node_is_not_taken() -> None:
    """A second try never meets the node of the first."""
    known = table(node("w1"), node("w2"))
    avoid = frozenset({"/braid/nodes/diffusion/w1"})
    rng = Random(0)
    assert {choose(code(), known, rng, avoid).node.record.node_id for _ in range(50)} == {"w2"}
    with pytest.raises(NoWorkerAvailable):
        choose(code(), table(node("w1")), rng, avoid)
