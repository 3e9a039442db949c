"""Ids of nodes, groups, models and versions: one form everywhere."""

from __future__ import annotations

import re

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z", re.ASCII)

FORM = "must match [a-z0-9][a-z0-9._-]{0,62}"


def is_id(text: str) -> bool:
    """Whether ``text`` can name a node, group, model or version."""
    return _ID.match(text) is not None
