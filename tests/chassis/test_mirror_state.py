"""How news turn one mirror state into the next."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.chassis import mirror_state
from services.chassis.entries import Batch, Entry, Listing
from services.chassis.mirror_state import Changes, MirrorState

KEYS = [f"/t/{name}" for name in "abcd"]
Operations = dict[str, bytes | None]
"""What one revision does: a value put, or None for a deletion, by key."""

revisions = st.lists(
    st.dictionaries(st.sampled_from(KEYS), st.none() | st.binary(max_size=2), min_size=1),
    max_size=12,
)


def apply(entries: dict[str, Entry], operations: Operations, revision: int) -> Batch:
    """Does to ``entries`` what etcd would, and returns the batch etcd would send."""
    deleted = []
    for key, value in operations.items():
        if value is not None:
            entries[key] = Entry(key, value, revision)
        elif entries.pop(key, None):
            deleted.append(key)
    put = tuple(entries[key] for key, value in operations.items() if value is not None)
    return Batch(revision, put, tuple(deleted))


@given(revisions, st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
def test_mirror_equals_etcd(
    history: list[Operations], missed: set[int], repeated: set[int]
) -> None:
    """Whatever is missed before a relist or delivered twice, the mirror ends equal to etcd."""
    truth: dict[str, Entry] = {}
    state, _ = mirror_state.relist(MirrorState(), Listing(1, {}), now=0.0)
    for index, operations in enumerate(history):
        batch = apply(truth, operations, revision=index + 2)
        if index in missed:
            state = mirror_state.interrupted(state)
        elif not state.connected:
            state, _ = mirror_state.relist(state, Listing(batch.revision, dict(truth)), now=0.0)
        else:
            for _ in range(2 if index in repeated else 1):
                state, _ = mirror_state.advance(state, batch, now=0.0)
        if state.connected:
            assert dict(state.entries) == truth
            assert state.revision == batch.revision


@given(revisions, revisions)
def test_changes_lead_from_one_state_to_the_next(
    before: list[Operations], after: list[Operations]
) -> None:
    """Applied to the old entries, the changes of a relist give the new ones, and no more."""
    old: dict[str, Entry] = {}
    new: dict[str, Entry] = {}
    for revision, operations in enumerate(before, 1):
        apply(old, operations, revision)
    for revision, operations in enumerate(after, 1):
        apply(new, operations, revision)
    state, _ = mirror_state.relist(MirrorState(), Listing(50, old), now=0.0)
    _, changes = mirror_state.relist(state, Listing(60, new), now=0.0)
    result = {key: entry for key, entry in old.items() if key not in changes.deleted}
    result |= {entry.key: entry for entry in changes.put}
    assert result == new
    assert all(old.get(entry.key) != entry for entry in changes.put)
    assert dict(changes.previous) == {key: old[key] for key in old if new.get(key) != old[key]}


def test_second_delivery_changes_nothing() -> None:
    """A batch that is applied again, or an older one, is no change."""
    state, _ = mirror_state.relist(MirrorState(), Listing(4, {}), now=0.0)
    batch = Batch(5, (Entry("/t/a", b"x", 5),))
    state, first = mirror_state.advance(state, batch, now=1.0)
    state, second = mirror_state.advance(state, batch, now=2.0)
    assert (bool(first), bool(second)) == (True, False)
    assert state.fresh_at == 2.0


def test_states_do_not_share() -> None:
    """A state that somebody still reads never changes."""
    first, _ = mirror_state.relist(MirrorState(), Listing(1, {}), now=0.0)
    mirror_state.advance(first, Batch(2, (Entry("/t/a", b"x", 2),)), now=0.0)
    assert not first.entries


def test_age_grows_while_interrupted() -> None:
    """An interruption keeps the entries, and says how old they are."""
    listing = Listing(1, {"/t/a": Entry("/t/a", b"x", 1)})
    state, _ = mirror_state.relist(MirrorState(), listing, now=10.0)
    state = mirror_state.interrupted(state)
    assert (state.connected, state.age_s(17.0), len(state.entries)) == (False, 7.0, 1)


def test_state_from_disk_is_of_unknown_age() -> None:
    """What comes from the disk is marked, is not connected, and infinitely old."""
    state, changes = mirror_state.booted(Listing(1, {"/t/a": Entry("/t/a", b"x", 1)}))
    assert (state.from_disk, state.connected) == (True, False)
    assert state.age_s(0.0) == float("inf")
    assert changes == Changes(put=(Entry("/t/a", b"x", 1),), relisted=True)


def test_history_changed() -> None:
    """Another cluster, or a revision that went back, is another history."""
    state, _ = mirror_state.relist(MirrorState(), Listing(10, {}, cluster_id=7), now=0.0)
    assert not mirror_state.history_changed(state, Listing(10, {}, cluster_id=7))
    assert mirror_state.history_changed(state, Listing(9, {}, cluster_id=7))
    assert mirror_state.history_changed(state, Listing(11, {}, cluster_id=8))
    assert not mirror_state.history_changed(MirrorState(), Listing(9, {}, cluster_id=8))
    assert not mirror_state.history_changed(
        replace(state, cluster_id=0), Listing(11, {}, cluster_id=8)
    )
