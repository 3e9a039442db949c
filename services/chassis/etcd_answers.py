"""Reads etcd's answers; pure functions over messages of the client stubs.

The messages come typed as Any, because the stubs carry no types.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from services.chassis.entries import Batch, Entry, Listing
from services.chassis.registry_faults import WatchEnded

_PUT = 0
"""mvccpb.Event.EventType.PUT"""


def entry(kv: Any) -> Entry:
    """One stored key. A key that is not UTF-8 is no key of ours, but must not break a list."""
    return Entry(kv.key.decode(errors="backslashreplace"), kv.value, kv.mod_revision, kv.lease)


def listing(answer: Any) -> Listing:
    """A range with the revision and the cluster it was read at."""
    entries = {found.key: found for found in map(entry, answer.kvs)}
    return Listing(answer.header.revision, entries, answer.header.cluster_id)


def batches(response: Any) -> Iterator[Batch]:
    """A watch's events by revision.

    A revision comes whole: etcd spreads one over several messages only for a
    watch that asks for fragments.
    """
    for revision, group in itertools.groupby(response.events, lambda event: event.kv.mod_revision):
        last = {event.kv.key: event for event in group}.values()
        yield Batch(
            revision,
            put=tuple(entry(event.kv) for event in last if event.type == _PUT),
            deleted=tuple(entry(event.kv).key for event in last if event.type != _PUT),
        )


def check(response: Any, listed: Listing) -> None:
    """Raises WatchEnded where the watch does not continue the list's history."""
    if response.compact_revision:
        raise WatchEnded(f"revisions before {response.compact_revision} are compacted")
    if response.canceled:
        raise WatchEnded(f"etcd cancelled the watch: {response.cancel_reason}")
    if response.header.cluster_id != listed.cluster_id:
        raise WatchEnded("etcd is another cluster now")
    if response.created and response.header.revision < listed.revision:
        raise WatchEnded("etcd went back to an earlier revision")
