"""The last known keys on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from services.chassis.disk_snapshot import DiskSnapshot
from services.chassis.entries import Entry, Listing

LISTING = Listing(7, {"/t/a": Entry("/t/a", b"\x00\xff", 5, 99)}, cluster_id=2**63 + 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "registry.json"


def test_round_trip(path: Path) -> None:
    """What was saved comes back, bytes, leases and all."""
    DiskSnapshot(path, "/t/").save(LISTING)
    assert DiskSnapshot(path, "/t/").load() == LISTING


def test_nothing_saved_yet(path: Path) -> None:
    """A first start finds nothing, which is not worth a warning."""
    with capture_logs() as lines:
        assert DiskSnapshot(path, "/t/").load() is None
    assert lines == []


def test_only_its_owner_reads_it(path: Path) -> None:
    """The file holds callers' key hashes, so nobody else may read it."""
    DiskSnapshot(path, "/t/").save(LISTING)
    assert path.stat().st_mode & 0o077 == 0


def test_failed_save_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save that breaks off leaves what was there, and no litter."""
    snapshot = DiskSnapshot(path, "/t/")
    snapshot.save(LISTING)

    def full_disk(_handle: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        snapshot.save(Listing(8, {}))
    assert snapshot.load() == LISTING
    assert list(path.parent.iterdir()) == [path]


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_damaged_file(path: Path, data: st.DataObject) -> None:
    """A file cut short or with a byte changed is ignored with one warning, never half read."""
    snapshot = DiskSnapshot(path, "/t/")
    snapshot.save(LISTING)
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    damaged = data.draw(
        st.sampled_from([whole[:place], whole[:place] + bytes([byte]) + whole[place + 1 :]])
    )
    path.write_bytes(damaged)
    with capture_logs() as lines:
        found = snapshot.load()
    assert found is None
    assert [line["event"] for line in lines] == ["disk_snapshot_ignored"]


@pytest.mark.parametrize("text", ["", "null", "[]", '{"body": 3}', json.dumps([1] * 9)])
def test_other_content(path: Path, text: str) -> None:
    """Whatever else lies there is ignored with one warning."""
    path.parent.mkdir()
    path.write_text(text)
    with capture_logs() as lines:
        assert DiskSnapshot(path, "/t/").load() is None
    assert [line["log_level"] for line in lines] == ["warning"]


def test_other_prefix(path: Path) -> None:
    """A snapshot of other keys is not taken for ours."""
    DiskSnapshot(path, "/t/").save(LISTING)
    assert DiskSnapshot(path, "/u/").load() is None
