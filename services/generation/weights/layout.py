"""A version as a folder: links by the names that the record has, to content by its hash."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from braid.config.v1.config_pb2 import ModelVersion
from services.generation.weights.blobs import Blobs
from services.generation.weights.manifest import digest_of, key_of


class Layout:
    """Folders under ``versions``; each set of files has its own, which never changes."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder = folder / "versions"
        self._blobs = blobs

    def place(self, record: ModelVersion) -> Path:
        """Where the version's folder is, or would be."""
        return self._folder / record.model / f"{record.version}-{key_of(record)}"

    def lay_out(self, record: ModelVersion) -> Path:
        """The version's folder, made in one step. Raises OSError."""
        place = self.place(record)
        if self._is_right(place, record):
            return place
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".", dir=place.parent, ignore_cleanup_errors=True
        ) as draft:
            self._link(Path(draft), record)
            shutil.rmtree(place, ignore_errors=True)
            try:
                Path(draft).rename(place)
            except OSError:
                # Another worker of this host was first.
                if not self._is_right(place, record):
                    raise
        return place

    def _link(self, draft: Path, record: ModelVersion) -> None:
        for file in record.files:
            link = draft / file.path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self._target(link, digest_of(file)))

    def _target(self, link: Path, digest: str) -> str:
        return os.path.relpath(self._blobs.place(digest), link.parent)

    def _is_right(self, place: Path, record: ModelVersion) -> bool:
        names = {place / file.path: digest_of(file) for file in record.files}
        return all(
            link.is_symlink() and os.readlink(link) == self._target(link, digest)
            for link, digest in names.items()
        )
