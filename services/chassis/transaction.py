"""Conditional writes: all of them under one revision, or none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Holds while the key still has the revision that the writer saw; 0: while it is absent."""

    key: str
    mod_revision: int


@dataclass(frozen=True, slots=True)
class Put:
    """Stores a value, under a lease unless ``lease`` is 0."""

    key: str
    value: bytes
    lease: int = 0


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a key; no fault where it is absent."""

    key: str


Operation = Put | Delete


@dataclass(frozen=True, slots=True)
class TxnResult:
    """Whether every condition held and all was written, and the revision after it."""

    succeeded: bool
    revision: int
