"""A version's files: from its store into the local cache, and never unverified.

Nothing is loaded from a store itself. Files are copied beside the cache's place
for the version, compared with the record, and moved there in one rename.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import structlog

from braid.config.v1.config_pb2 import ModelFile, ModelVersion
from services.chassis.process import StartFailure

EXIT_MISMATCH = 3
_CHUNK_BYTES = 1024 * 1024

log = structlog.get_logger()


class WeightsUnavailable(StartFailure):
    """The files cannot be had: no record, no folder, no file, no room."""


class WeightsMismatch(StartFailure):
    """Files are there and are not what the record says."""

    def __init__(self, message: str) -> None:
        super().__init__(message, EXIT_MISMATCH)


class WeightCache:
    """Verified copies of versions under one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.expanduser()

    def fetch(self, record: ModelVersion) -> Path:
        """A folder with the version's files, not yet verified.

        Blocks while it copies. Raises WeightsUnavailable naming what is missing.
        """
        check_paths(record)
        kept = self._place(record)
        return kept if kept.is_dir() else self._copy(record)

    def verify(self, record: ModelVersion, folder: Path) -> Path:
        """Compares ``folder`` with the record; returns where the verified files are.

        A kept copy that has gone bad is replaced from the store once. Raises
        WeightsMismatch; what did not match is set aside and never loaded.
        """
        faults = differences(folder, record)
        if faults and folder == self._place(record):
            self._set_aside(record, folder, faults)
            folder = self._copy(record)
            faults = differences(folder, record)
        if faults:
            self._set_aside(record, folder, faults)
            raise WeightsMismatch(f"{record.model} {record.version}: {'; '.join(faults)}")
        return self._keep(record, folder)

    def _place(self, record: ModelVersion) -> Path:
        return self._folder / record.model / record.version

    def _copy(self, record: ModelVersion) -> Path:
        source = store_folder(record.uri)
        place = self._place(record)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=f".{record.version}-", dir=place.parent))
        except OSError as error:
            raise WeightsUnavailable(f"{place.parent}: {error.strerror}") from None
        try:
            for file in record.files:
                _copy_file(source, draft, file)
        except WeightsUnavailable:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return draft

    def _keep(self, record: ModelVersion, folder: Path) -> Path:
        place = self._place(record)
        if folder == place:
            return place
        try:
            folder.rename(place)
        except OSError:
            # Another worker of this host was first; its copy counts if it is right.
            shutil.rmtree(folder, ignore_errors=True)
            return self.verify(record, place)
        return place

    def _set_aside(self, record: ModelVersion, folder: Path, faults: list[str]) -> None:
        aside = self._place(record).with_name(f".{record.version}.rejected")
        log.error(
            "weights_mismatch",
            alert=True,
            model=record.model,
            version=record.version,
            differences=faults,
            set_aside=str(aside),
        )
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)


def check_paths(record: ModelVersion) -> None:
    """Raises WeightsUnavailable where a record lists nothing or a path leaves its folder."""
    if not record.files:
        raise WeightsUnavailable(f"{record.model} {record.version}: the record lists no files")
    for file in record.files:
        path = PurePosixPath(file.path)
        inside = file.path and not path.is_absolute() and ".." not in path.parts
        if not inside or "\\" in file.path or "\0" in file.path:
            raise WeightsUnavailable(
                f"{record.model} {record.version}: file path {file.path!r} leaves the folder"
            )


def store_folder(uri: str) -> Path:
    """The folder that a file:// URI names. Raises WeightsUnavailable."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise WeightsUnavailable(f"uri {uri!r}: only file:///folder can be fetched")
    folder = Path(unquote(parts.path))
    if not folder.is_dir():
        raise WeightsUnavailable(f"uri {uri!r}: is not a folder that this worker can read")
    return folder


def differences(folder: Path, record: ModelVersion) -> list[str]:
    """How the files in ``folder`` differ from the record, one line a file."""
    return [fault for file in record.files if (fault := _difference(folder / file.path, file))]


def _difference(path: Path, file: ModelFile) -> str:
    try:
        size = path.stat().st_size
        digest = _sha256(path)
    except OSError as error:
        return f"{file.path}: {error.strerror}"
    if size != file.size_bytes:
        return f"{file.path}: {size} bytes, recorded {file.size_bytes}"
    if digest != file.sha256.lower():
        return f"{file.path}: sha256 {digest}, recorded {file.sha256}"
    return ""


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _copy_file(source: Path, draft: Path, file: ModelFile) -> None:
    """Copies one file; a link in the store must stay inside it."""
    origin, target = source / file.path, draft / file.path
    if not origin.resolve().is_relative_to(source.resolve()):
        raise WeightsUnavailable(f"{origin}: is a link out of the store's folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, target)
    except OSError as error:
        raise WeightsUnavailable(f"{origin}: {error.strerror}") from None
