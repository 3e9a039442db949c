"""Ejections: who is out, for how long, and never too many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from services.router.ejection import Ejections, serving
from services.router.node import TableNode
from services.router.node_health import FIRST_EJECTION_S, IN_A_ROW
from services.router.pool import Pool
from tests.router.tables import node, table


class Timer:
    """One call put off; the test makes it."""

    def __init__(self, due: Callable[[], None]) -> None:
        self.due = due
        self.cancelled = False

    def cancel(self) -> None:
        """It will not be made."""
        self.cancelled = True


class Scene:
    """Ejections over a table, with time in the test's hand."""

    def __init__(self, *nodes: TableNode) -> None:
        self.table = table(*nodes)
        self.timers: list[Timer] = []
        self.spans: list[float] = []
        self.told: list[str] = []
        self.now = 0.0
        self.ejections = Ejections(self, self.told.append, self._later, lambda: self.now)

    def _later(self, seconds: float, due: Callable[[], None]) -> Timer:
        self.spans.append(seconds)
        self.timers.append(Timer(due))
        return self.timers[-1]

    def mark(self, key: str, ejected: str) -> None:
        """As a live table does."""
        if key in self.table.nodes:
            self.table = self.table.changed([replace(self.table.nodes[key], ejected=ejected)])
            self.ejections.review()

    def leave(self, key: str) -> None:
        """A node goes."""
        self.table = self.table.changed(gone=[key])
        self.ejections.review()

    def fail(self, node_id: str, times: int = IN_A_ROW) -> None:
        """Calls to a node fail."""
        for _ in range(times):
            self.ejections.failed(self.node(node_id))

    def node(self, node_id: str) -> TableNode:
        """A node as the table has it now."""
        return self.table.nodes[key_of(node_id)]

    def pool(self) -> Pool:
        """Nodes of the first version that take calls."""
        return self.table.groups["diffusion"]["m"]["v1"].pool

    def pass_interval(self) -> None:
        """Every timer that runs goes off."""
        running, self.timers = self.timers, []
        for timer in running:
            if not timer.cancelled:
                timer.due()


def key_of(node_id: str) -> str:
    return f"/braid/nodes/diffusion/{node_id}"


def test_failing_node_is_out_and_comes_back_by_one_call() -> None:
    """Ejected, half-open for one call at a time, trusted after a good one."""
    scene = Scene(node("w1"), node("w2"))
    scene.fail("w1")
    assert [one.record.node_id for one in scene.pool().nodes] == ["w2"]
    assert scene.node("w1").ejected
    scene.pass_interval()
    assert len(scene.pool().able(frozenset()).nodes) == 2
    scene.node("w1").health.probed = True
    assert [one.record.node_id for one in scene.pool().able(frozenset()).nodes] == ["w2"]
    scene.ejections.succeeded(scene.node("w1"))
    assert scene.node("w1").trusted
    assert not scene.pool().half_open
    assert (scene.told, scene.spans) == (["diffusion"], [FIRST_EJECTION_S])


def test_failed_probe_ejects_for_longer() -> None:
    """One failure of a half-open node is enough, and its next ejection is twice as long."""
    scene = Scene(node("w1"), node("w2"))
    scene.fail("w1")
    scene.pass_interval()
    scene.fail("w1", times=1)
    assert scene.spans == [FIRST_EJECTION_S, 2 * FIRST_EJECTION_S]
    assert scene.node("w1").ejected


def test_half_of_the_group_at_most() -> None:
    """Of three nodes that all fail one is ejected."""
    scene = Scene(*(node(f"w{i}") for i in range(3)))
    for index in range(3):
        scene.fail(f"w{index}", times=4 * IN_A_ROW)
    assert len(scene.pool().nodes) == 2


def test_last_node_of_a_model_stays() -> None:
    """The only node of a model is never ejected, though its group has others."""
    scene = Scene(node("w1"), *(node(f"x{i}", model="other") for i in range(5)))
    scene.fail("w1", times=50)
    assert not scene.node("w1").ejected


def test_ejected_node_is_needed_when_others_leave() -> None:
    """Where the rest of the group goes away, an ejected node gets its calls back."""
    scene = Scene(node("w1"), node("w2"))
    scene.fail("w1")
    scene.leave(key_of("w2"))
    assert scene.node("w1").trusted
    assert len(scene.pool().nodes) == 1
    assert all(timer.cancelled for timer in scene.timers)


NAMES = st.sampled_from([f"w{index}" for index in range(5)])
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("fail"), NAMES),
        st.tuples(st.just("succeed"), NAMES),
        st.tuples(st.just("leave"), NAMES),
        st.tuples(st.just("pass"), st.none()),
    ),
    max_size=40,
)


@given(EVENTS)
@settings(max_examples=200, deadline=None)
def test_never_more_than_half_and_never_the_last(events: list[tuple[str, str]]) -> None:
    """Whatever happens, half of the nodes are trusted and each model has a trusted one."""
    scene = Scene(*(node(f"w{i}", model="m" if i < 3 else "n") for i in range(5)))
    for event, name in events:
        if event == "pass":
            scene.pass_interval()
        elif key_of(name) in scene.table.nodes:
            if event == "leave":
                scene.leave(key_of(name))
            elif event == "fail":
                scene.fail(name)
            else:
                scene.ejections.succeeded(scene.node(name))
        nodes = serving(scene.table, "diffusion")
        trusted = [one for one in nodes if one.trusted]
        assert 2 * len(trusted) >= len(nodes)
        assert {one.record.model for one in trusted} == {one.record.model for one in nodes}
