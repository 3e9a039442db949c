"""Model versions on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.mesh_failure import StoreMissing
from services.cli.model_store import stored_versions


def add_version(store: Path, model: str, version: str) -> None:
    folder = store / model / version
    folder.mkdir(parents=True)
    (folder / "braid.json").write_text("{}")


def test_versions_in_order(tmp_path: Path) -> None:
    """Numbers in a version count as numbers."""
    for version in ("v10", "v2", "v1"):
        add_version(tmp_path, "m", version)
    assert [one.version for one in stored_versions(tmp_path)] == ["v1", "v2", "v10"]


def test_folder_without_a_card_is_no_version(tmp_path: Path) -> None:
    """What holds no braid.json is passed over."""
    add_version(tmp_path, "m", "v1")
    (tmp_path / "m" / "notes").mkdir()
    assert [one.version for one in stored_versions(tmp_path)] == ["v1"]


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_store_without_versions_is_refused(tmp_path: Path, folder: str) -> None:
    """A store that is empty or not there is named."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreMissing, match=folder):
        stored_versions(tmp_path / folder)
