"""Ids of nodes, groups, models and versions: one form everywhere."""

from __future__ import annotations

import os
import re
import socket

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z", re.ASCII)

FORM = "must match [a-z0-9][a-z0-9._-]{0,62}"

_MOVING_VERSIONS = frozenset({"latest"})
"""Names that would mean another version tomorrow."""


def is_id(text: str) -> bool:
    """Whether ``text`` can name a node, group, model or version."""
    return _ID.match(text) is not None


def is_version(text: str) -> bool:
    """Whether ``text`` can name a version: an id that always means the same one."""
    return is_id(text) and text not in _MOVING_VERSIONS


def process_id() -> str:
    """An id made of this host's name and this process's number."""
    host = re.sub(r"[^a-z0-9._-]", "-", socket.gethostname().lower()).lstrip("._-")
    return f"{host[:48] or 'node'}-{os.getpid()}"
