"""Names of keys."""

from __future__ import annotations

import pytest

from services.chassis import keys
from services.chassis.errors import InvalidRequest


def test_node_key() -> None:
    """A node's key is its group and its id below the nodes' prefix."""
    assert keys.node_key("diffusion", "w-1.a") == "/braid/nodes/diffusion/w-1.a"


@pytest.mark.parametrize(
    "bad", ["", "a/b", "..", ".", "w 1", "W1", "-w", "w\n", "a" * 64, "w\u0000", "\u0448"]
)
def test_bad_ids(bad: str) -> None:
    """No key is made of an id that is empty, has a slash, or is not in the one form."""
    for make in (keys.router_key, keys.weight_key, keys.group_key, keys.traffic_key):
        with pytest.raises(InvalidRequest, match="must match"):
            make(bad)
    with pytest.raises(InvalidRequest, match="node_id"):
        keys.node_key("g", bad)
    with pytest.raises(InvalidRequest, match="group"):
        keys.node_key(bad, "w1")


def test_ids_of() -> None:
    """The ids come back out of a key; keys of another form give none."""
    assert keys.ids_of("/braid/nodes/g/w1", keys.NODES, 2) == ("g", "w1")
    for other in ("/braid/nodes/g", "/braid/nodes/g/", "/braid/nodes/g/w/1", "/braid/nodesx/g/w"):
        assert keys.ids_of(other, keys.NODES, 2) is None


def test_change_keys_sort_by_revision() -> None:
    """The order of audit keys is the order of their revisions."""
    assert keys.change_key(9) < keys.change_key(10) < keys.change_key(2**62)
