"""One file from its store to its place among the blobs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial as bound

from braid.config.v1.config_pb2 import ModelFile
from services.chassis.file_store import FileStore
from services.generation.weights.blobs import Blobs
from services.generation.weights.digest import sha256_of
from services.generation.weights.faults import WeightsMismatch, WrongLength
from services.generation.weights.manifest import digest_of
from services.generation.weights.mismatches import Mismatch, Mismatches
from services.generation.weights.partial import Partial
from services.generation.weights.retries import Retries
from services.generation.weights.transfer import FetchPolicy, Transfer

_EVIDENCE_BYTES = 16 * 2**20
"""As much is fetched of a file whose size alone shows that it is another one."""

Arrived = Callable[[int], None]


class Download:
    """Files from one store; the caller holds the lock of each."""

    def __init__(
        self,
        store: FileStore,
        blobs: Blobs,
        policy: FetchPolicy,
        mismatches: Mismatches,
        stopped: threading.Event,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._policy = policy
        self._mismatches = mismatches
        self._stopped = stopped
        self._retries = Retries(policy.attempts, stopped)
        self._transfer = Transfer(store, policy.parallel, self._retries, stopped)

    def run(self, version: str, file: ModelFile, arrived: Arrived) -> None:
        """Fetches until the hash is right, a bounded number of times.

        Raises WeightsUnavailable, WeightsMismatch, OSError of the disk, FetchStopped.
        """
        for _ in range(self._policy.tries):
            wrong = self._once(file, arrived)
            if wrong is None:
                self._blobs.accept(digest_of(file))
                return
            place = self._blobs.partial(digest_of(file))
            aside = self._blobs.set_aside(digest_of(file), place)
            self._mismatches.report(version, wrong, aside)
        raise WeightsMismatch(f"{version}: {wrong}")

    def _once(self, file: ModelFile, arrived: Arrived) -> Mismatch | None:
        """Fills the partial file; says how it is wrong, if it is."""
        stored = self._retries.run(file.path, bound(self._store.size, file.path))
        if stored is None or stored == file.size_bytes:
            detail = self._receive(file, file.size_bytes, arrived)
        else:
            self._receive(file, min(stored, _EVIDENCE_BYTES), arrived)
            detail = f"{stored} bytes in the store, recorded {file.size_bytes}"
        found = sha256_of(self._blobs.partial(digest_of(file)), self._stopped)
        right = found == digest_of(file) and not detail
        return None if right else Mismatch(file, found, detail)

    def _receive(self, file: ModelFile, size: int, arrived: Arrived) -> str:
        """What was wrong with the length of an answer, if anything."""
        path = self._blobs.partial(digest_of(file))
        with Partial(path, size, self._policy.range_bytes) as partial:
            arrived(size - sum(part.length for part in partial.missing))
            try:
                self._transfer.run(file.path, partial, arrived)
            except WrongLength as error:
                return str(error)
            partial.flush()
        return ""
