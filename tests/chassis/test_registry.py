"""The client of etcd against a real one."""

from __future__ import annotations

import pytest

from services.chassis.entries import Batch, Listing, Pulse
from services.chassis.errors import RegistryRefused, RegistryUnavailable
from services.chassis.registry import Registry
from services.chassis.transaction import Delete, Put, Unchanged
from services.cli.etcd_process import EtcdProcess
from tests.etcd import free_port, settings_for


async def test_put_and_get(registry: Registry) -> None:
    """A value comes back as it was put, with the revision of its write."""
    revision = await registry.put("/t/a", b"\x00one")
    entry = await registry.get("/t/a")
    assert entry
    assert (entry.value, entry.mod_revision, entry.lease) == (b"\x00one", revision, 0)


async def test_get_of_an_absent_key(registry: Registry) -> None:
    """An absent key is None, not an error."""
    assert await registry.get("/t/none") is None
