"""The last known keys on disk, to start from while etcd is down."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import structlog

from services.chassis.entries import Entry, Listing

_FORMAT = 1

log = structlog.get_logger()


class DiskSnapshot:
    """One file: a checksum, then a Listing as JSON.

    Only its owner can read it, as it holds the hashes of callers' keys.
    """

    def __init__(self, path: Path, prefix: str) -> None:
        self._path = path
        self._prefix = prefix

    def save(self, listing: Listing) -> None:
        """Replaces the file in one step: a crash leaves the old one or the new one."""
        body = json.dumps(_to_json(self._prefix, listing))
        text = f"{_digest(body)}\n{body}"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def load(self) -> Listing | None:
        """What was saved; None, with one warning, where it is damaged or of another prefix."""
        try:
            text = self._path.read_text(encoding="utf-8")
            return _from_json(self._prefix, _checked(text))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = type(error).__name__
            log.warning("disk_snapshot_ignored", path=str(self._path), reason=reason)
            return None


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _checked(text: str) -> Any:
    digest, _, body = text.partition("\n")
    if _digest(body) != digest:
        raise ValueError("checksum does not match")
    return json.loads(body)


def _to_json(prefix: str, listing: Listing) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "prefix": prefix,
        "revision": listing.revision,
        "cluster_id": listing.cluster_id,
        "entries": [
            [entry.key, base64.b64encode(entry.value).decode(), entry.mod_revision, entry.lease]
            for entry in listing.entries.values()
        ],
    }


def _from_json(prefix: str, body: Any) -> Listing:
    if (body["format"], body["prefix"]) != (_FORMAT, prefix):
        raise ValueError("another format or prefix")
    entries = [
        Entry(key, base64.b64decode(value, validate=True), mod_revision, lease)
        for key, value, mod_revision, lease in body["entries"]
    ]
    by_key = {entry.key: entry for entry in entries}
    return Listing(body["revision"], by_key, body["cluster_id"])
