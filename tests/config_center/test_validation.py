"""What the config center lets into etcd."""

from __future__ import annotations

import pytest

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from services.chassis.errors import InvalidRequest
from services.chassis.group_record import check_group
from services.config_center.validation import (
    check_ids,
    check_policy,
    check_shares,
    check_version,
)
from services.router.builtin_policy import builtin_policy


@pytest.mark.parametrize("bad", ["", "a/b", "..", "w 1", "Ä", "A", "-a", "a" * 64, "a\n"])
def test_ids_have_one_form(bad: str) -> None:
    """What could escape a key or read as another key is refused by name."""
    with pytest.raises(InvalidRequest, match="model"):
        check_ids(model=bad)


@pytest.mark.parametrize("good", ["a", "llada2", "v1.2", "0-x_y.z", "a" * 63])
def test_ids_that_are_fine(good: str) -> None:
    """Lower case, digits and inner marks make an id."""
    check_ids(model=good)


def test_latest_is_no_version() -> None:
    """A version that moves cannot be rolled back to."""
    with pytest.raises(InvalidRequest, match="version"):
        check_version("demo", "latest")


@pytest.mark.parametrize(
    ("shares", "field"),
    [
        ({}, "shares"),
        ({"v1": 0}, "shares"),
        ({"v1": 1001}, r"shares\[v1\]"),
        ({"v 1": 5}, r"shares\[v 1\]"),
    ],
)
def test_shares_that_divide_nothing(shares: dict[str, int], field: str) -> None:
    """Shares out of range, for no version, or all zero are refused by field."""
    with pytest.raises(InvalidRequest, match=field):
        check_shares(shares)


@pytest.mark.parametrize(
    ("group", "field"),
    [
        (config_pb2.Group(), "group.group"),
        (config_pb2.Group(group="a/b"), "group.group"),
        (config_pb2.Group(group="g", version="V 1"), "group.version"),
        (config_pb2.Group(group="g", max_steps=0), "group.max_steps"),
        (config_pb2.Group(group="g", max_batch_size=1025), "group.max_batch_size"),
        (config_pb2.Group(group="g", confidence_threshold=0), "group.confidence_threshold"),
        (
            config_pb2.Group(group="g", confidence_threshold=float("nan")),
            "group.confidence_threshold",
        ),
        (config_pb2.Group(group="g", strategy="luck"), "group.strategy"),
        (config_pb2.Group(group="g", strategy=""), "group.strategy"),
        (config_pb2.Group(group="g", factor=0), "group.factor"),
        (config_pb2.Group(group="g", entropy_bound=65), "group.entropy_bound"),
    ],
)
def test_group_out_of_range(group: config_pb2.Group, field: str) -> None:
    """Each parameter outside its range is named."""
    with pytest.raises(InvalidRequest, match=field):
        check_group(group)


def test_group_with_nothing_set_is_fine() -> None:
    """A group may leave everything to the workers."""
    check_group(config_pb2.Group(group="diffusion", queue_length=0))


def test_builtin_policy_passes() -> None:
    """What routers fall back to is what the config center would accept."""
    assert check_policy(builtin_policy()) == ()


def test_policy_without_default_is_refused() -> None:
    """A request that matches no rule must have a place to go."""
    with pytest.raises(InvalidRequest, match="policy"):
        check_policy(routing_pb2.Policy())


def test_unreachable_rule_is_a_warning() -> None:
    """A rule behind one that matches everything is told, not refused."""
    route = routing_pb2.Route(groups=[routing_pb2.GroupShare(group="g")])
    rules = [routing_pb2.Rule(name=name, route=route) for name in ("first", "second")]
    warnings = check_policy(routing_pb2.Policy(rules=rules, default=route))
    assert [warning for warning in warnings if "second" in warning] == list(warnings)
    assert len(warnings) == 1
