"""Fixtures that tests of every package share, and how they are divided over processes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.etcd", "tests.checkpoints"]

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("braid", deadline=None)
settings.load_profile("braid")

_LONGEST_FIRST = ("tests/faults", "tests/e2e", "tests/generation")
"""What would else be begun last, while the other process has nothing left to do."""

_ONE_MESH = "tests/e2e/"


class ByFile(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """A file's tests stay together, and so do all that share the mesh of real processes."""

    def _split_scope(self, nodeid: str) -> str:
        return _ONE_MESH if nodeid.startswith(_ONE_MESH) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """How `make test` divides the suite."""
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest folders first; the order is else as it was."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    folders = [item.nodeid.startswith(folder) for folder in _LONGEST_FIRST]
    return folders.index(True) if True in folders else len(folders)
