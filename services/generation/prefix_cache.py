"""Keys and values of prompt heads, kept for other requests that begin alike.

Heads are kept in chunks, each known by a digest of all tokens up to its end, so
that two requests share exactly the chunks before their first difference. The
least recently used chunks go first when the budget is spent.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator

from torch import Tensor

from services.generation.sequence import Head
from services.generation.slots import GRAIN, SlotCache


class PrefixCache:
    """At most ``budget_bytes`` of chunks beside the slots; used by the engine's thread alone."""

    def __init__(self, slots: SlotCache, budget_bytes: int) -> None:
        self._slots = slots
        self._budget_bytes = budget_bytes
        self._chunks: OrderedDict[bytes, Tensor] = OrderedDict()
        """Least recently used first; a chunk before those that lead to it."""
        self.bytes_used = 0

    def restore(self, slot: int, head: Head) -> int:
        """Copies what is kept of the head into a slot; returns the tokens it has by that."""
        found: list[bytes] = []
        for digest in _digests(head):
            chunk = self._chunks.get(digest)
            if chunk is None:
                break
            self._slots.put(slot, len(found) * GRAIN, chunk)
            found.append(digest)
        self._touch(found)
        return len(found) * GRAIN

    def keep(self, slot: int, head: Head) -> None:
        """Copies the head, which the slot holds, out of it."""
        if not self._budget_bytes:
            return
        digests = list(_digests(head))
        for index, digest in enumerate(digests):
            if digest not in self._chunks:
                chunk = self._slots.get(slot, index * GRAIN, GRAIN)
                self._chunks[digest] = chunk
                self.bytes_used += chunk.nbytes
        self._touch(digests)
        while self.bytes_used > self._budget_bytes:
            _, chunk = self._chunks.popitem(last=False)
            self.bytes_used -= chunk.nbytes

    def _touch(self, digests: list[bytes]) -> None:
        """Nobody can use a chunk whose lead is gone: the first one goes last."""
        for digest in reversed(digests):
            self._chunks.move_to_end(digest)


def _digests(head: Head) -> Iterator[bytes]:
    """Of each whole chunk with all that leads to it."""
    digest = hashlib.sha256(head.grain.to_bytes(4, "big"))
    for start in range(0, len(head.tokens) - GRAIN + 1, GRAIN):
        digest.update(array("q", head.tokens[start : start + GRAIN]).tobytes())
        yield digest.digest()
