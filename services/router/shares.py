"""Drawing one of several by share, at random or by session."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def draw(shares: Sequence[tuple[T, float]], rng: Random, session: str = "") -> T:
    """One entry, each with a chance in proportion to its share.

    Of equal ``session`` it is the same entry each time, on every router: the
    highest of weighted random numbers made from the session and the entry
    (weighted rendezvous hashing, Schindelhauer and Schomaker 2005). So when the
    shares change, a session moves only towards an entry whose share grew
    against its own. Shares are over 0; there is at least one entry.
    """
    if len(shares) == 1:
        return shares[0][0]
    if session:
        return min(shares, key=lambda entry: _arrival(session, entry[0]) / entry[1])[0]
    point = rng.random() * sum(share for _, share in shares)
    for entry, share in shares:
        point -= share
        if point < 0:
            return entry
    return shares[-1][0]


def _arrival(session: str, entry: object) -> float:
    """An exponentially distributed number of mean 1 that only these two decide."""
    digest = hashlib.blake2b(f"{session}\0{entry}".encode(), digest_size=8).digest()
    return -math.log((int.from_bytes(digest, "big") + 1) / (2**64 + 1))
