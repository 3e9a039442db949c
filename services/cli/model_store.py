"""A folder of model versions: STORE/MODEL/VERSION/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from services.cli.mesh_failure import StoreMissing

DEFAULT_STORE = Path(__file__).resolve().parents[2] / "deploy" / "models" / "store"
_CARD = "braid.json"


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version and the folder of its files."""

    model: str
    version: str
    folder: Path


def stored_versions(store: Path) -> tuple[StoredVersion, ...]:
    """The versions in ``store``, oldest first within a model. Raises StoreMissing."""
    folders = [card.parent for card in store.absolute().glob(f"*/*/{_CARD}")]
    if not folders:
        raise StoreMissing(
            f"no model versions in {store} (looked for MODEL/VERSION/{_CARD}; see --store)"
        )
    versions = [StoredVersion(folder.parent.name, folder.name, folder) for folder in folders]
    return tuple(sorted(versions, key=lambda stored: (stored.model, version_order(stored.version))))


def version_order(version: str) -> tuple[tuple[int, str], ...]:
    """Sorts v2 before v10: runs of digits count as numbers."""
    parts = re.findall(r"\d+|\D+", version)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
