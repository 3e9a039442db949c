"""A version's files: from its store into the local cache, and never unverified.

Nothing is loaded from a store itself, and nothing is in the cache under its name
before its hash was seen to be the recorded one.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from braid.config.v1.config_pb2 import ModelFile, ModelVersion
from services.chassis.file_store import StoreError, open_store
from services.generation.weights.blobs import Blobs
from services.generation.weights.digest import sha256_of
from services.generation.weights.download import Download
from services.generation.weights.faults import WeightsMismatch, WeightsUnavailable, words_of
from services.generation.weights.layout import Layout
from services.generation.weights.manifest import check_record, digest_of
from services.generation.weights.mismatches import Mismatch, Mismatches
from services.generation.weights.progress import FetchProgress, Tell
from services.generation.weights.transfer import FetchPolicy

DEFAULT_POLICY = FetchPolicy()
_HASHERS = 4


class WeightCache:
    """Verified files under one folder, which the workers of a host may share.

    ``max_bytes`` bounds it (0: no bound), ``mismatched`` is called for each file
    that is set aside. Calls block; ``stop`` from another thread ends them.
    """

    def __init__(
        self,
        folder: Path,
        policy: FetchPolicy = DEFAULT_POLICY,
        *,
        max_bytes: int = 0,
        mismatched: Callable[[], None] = lambda: None,
        tell: Tell = lambda _: None,
    ) -> None:
        self._folder = folder.expanduser()
        self._policy = policy
        self._max_bytes = max_bytes
        self._mismatches = Mismatches(mismatched)
        self._tell = tell
        self._stopped = threading.Event()
        self._blobs = Blobs(self._folder)
        self._layout = Layout(self._folder, self._blobs)

    def stop(self) -> None:
        """Ends a fetch or a verification under way with FetchStopped."""
        self._stopped.set()

    def fetch(self, record: ModelVersion) -> Path:
        """A folder with the version's files, each verified when it came.

        Goes on where an earlier fetch was broken off. Raises WeightsUnavailable
        naming what is missing, and WeightsMismatch for what is not as recorded.
        """
        check_record(record)
        with self._explained():
            self._blobs.prepare()
            self._blobs.sweep()
            missing = [file for file in record.files if not self._holds(file)]
            if missing:
                self._bring(record, missing)
            if self._max_bytes:
                self._blobs.bound(self._max_bytes)
            return self._layout.lay_out(record)

    def verify(self, record: ModelVersion, folder: Path) -> Path:
        """Hashes the files in ``folder`` again; returns where they are if they are right.

        Content that has gone bad on the disk is set aside and fetched once more.
        Raises WeightsMismatch where that does not help.
        """
        wrong = self._differences(folder, record)
        if wrong:
            self._set_aside(record, wrong)
            folder = self.fetch(record)
            wrong = self._differences(folder, record)
        if wrong:
            faults = "; ".join(map(str, wrong))
            raise WeightsMismatch(f"{record.model} {record.version}: {faults}")
        return folder

    def _holds(self, file: ModelFile) -> bool:
        return self._blobs.holds(digest_of(file), file.size_bytes)

    def _bring(self, record: ModelVersion, missing: list[ModelFile]) -> None:
        store, total = open_store(record.uri), sum(file.size_bytes for file in missing)
        self._check_room(missing)
        name = f"{record.model} {record.version}"
        with FetchProgress(name, total, self._tell) as progress:
            download = Download(store, self._blobs, self._policy, self._mismatches, self._stopped)
            for file in missing:
                with self._blobs.locked(digest_of(file), self._stopped.is_set):
                    if not self._holds(file):
                        download.run(name, file, progress.arrived)

    def _check_room(self, missing: list[ModelFile]) -> None:
        """Says before the first byte that a disk is too small."""
        here = sum(_on_disk_bytes(self._blobs.partial(digest_of(file))) for file in missing)
        needed = sum(file.size_bytes for file in missing) - here
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise WeightsUnavailable(
                f"{self._folder}: {needed} bytes are to be fetched, {free} bytes are free"
            )

    def _differences(self, folder: Path, record: ModelVersion) -> list[Mismatch]:
        """How files in ``folder`` differ from the record."""
        with ThreadPoolExecutor(_HASHERS) as hashers:
            found = list(hashers.map(lambda file: self._difference(folder, file), record.files))
        return [wrong for wrong in found if wrong]

    def _difference(self, folder: Path, file: ModelFile) -> Mismatch | None:
        try:
            found = sha256_of(folder / file.path, self._stopped)
        except OSError as error:
            return Mismatch(file, "", words_of(error))
        return None if found == digest_of(file) else Mismatch(file, found)

    def _set_aside(self, record: ModelVersion, wrong: list[Mismatch]) -> None:
        for one in wrong:
            digest = digest_of(one.file)
            with self._blobs.locked(digest, self._stopped.is_set):
                place = self._blobs.place(digest)
                aside = self._blobs.set_aside(digest, place) if place.exists() else None
            self._mismatches.report(f"{record.model} {record.version}", one, aside)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What disk and store refuse, in an operator's words."""
        try:
            yield
        except StoreError as error:
            raise WeightsUnavailable(str(error)) from None
        except OSError as error:
            place = error.filename or self._folder
            raise WeightsUnavailable(f"{place}: {words_of(error)}") from None


def _on_disk_bytes(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0
