"""Gives the traffic back to a version that served well, checked before it is needed."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.errors import RollbackRefused, ServiceError
from services.config_center.change import Author
from services.config_center.documents import MODEL_VERSION, ROLLOUT, SHARES
from services.config_center.history import KEPT, History
from services.config_center.rollout.steps import ACTIVE, WHOLE
from services.config_center.served_well import differences, last_good, leading
from services.config_center.store import Store, Stored, write
from services.config_center.version_folder import differences as file_differences
from services.config_center.version_folder import read_version

Shares = Stored[dict[str, int]]

log = structlog.get_logger()


class Prober(Protocol):
    """Who can try a version's nodes."""

    async def probe(self, model: str, version: str) -> str:
        """Why the version would not serve; empty where each of its nodes does."""


class Rollback:
    """Finds, checks and switches."""

    def __init__(self, store: Store, history: History, prober: Prober) -> None:
        self._store = store
        self._history = history
        self._prober = prober

    async def roll_back(
        self, request: config_pb2.RollbackRequest, author: Author
    ) -> config_pb2.RollbackResponse:
        """Raises RollbackRefused with what is wrong, and RevisionConflict."""
        shares = await self._shares(request)
        present = leading(shares.value)
        target = request.version or await self._last_good(request.model, present)
        if target == present:
            raise RollbackRefused(f"{request.model} {target} has the traffic already")
        record = await self._checked(request.model, target)
        after = {**dict.fromkeys(shares.value, 0), target: WHOLE}
        answer = config_pb2.RollbackResponse(
            from_version=present, to_version=target, revision=shares.revision
        )
        answer.differences.extend(await self._record_differences(request.model, present, record))
        answer.differences.extend(differences(shares.value, after, "shares"))
        if not request.dry_run:
            key = keys.traffic_key(request.model)
            author = Author(author.who, author.reason, rolled_back=present)
            put = write(key, SHARES, after, shares.revision)
            answer.revision = await self._store.commit([put], author)
            log.info("rolled_back", model=request.model, bad=present, good=target)
        return answer

    async def _shares(self, request: config_pb2.RollbackRequest) -> Shares:
        rollout = await self._store.read(keys.rollout_key(request.model), ROLLOUT)
        if rollout and rollout.value.state in ACTIVE:
            raise RollbackRefused("a rollout is under way; abort it to have the old shares")
        key = keys.traffic_key(request.model)
        shares = await self._store.read(key, SHARES)
        expected = request.expected_revision
        if request.HasField("expected_revision") and expected != (shares.revision if shares else 0):
            raise await self._store.conflict(key)
        if shares is None or not leading(shares.value):
            raise RollbackRefused(f"no version of {request.model} has a share")
        return shares

    async def _last_good(self, model: str, present: str) -> str:
        found = last_good((await self._history.list(0, KEPT, "")).changes, model, present)
        if not found:
            raise RollbackRefused(f"no earlier version of {model} is known to have served well")
        return found

    async def _checked(self, model: str, version: str) -> config_pb2.ModelVersion:
        """The record, once it, its files and its nodes have been found good."""
        stored = await self._store.read(keys.model_key(model, version), MODEL_VERSION)
        if stored is None:
            raise RollbackRefused(f"{model} {version} is not recorded")
        try:
            folder = await asyncio.to_thread(read_version, stored.value.uri)
        except ServiceError as error:
            raise RollbackRefused(f"files of {model} {version}: {error.message}") from None
        if wrong := file_differences(folder.files, list(stored.value.files)):
            raise RollbackRefused(f"files of {model} {version}: {'; '.join(wrong)}")
        if fault := await self._prober.probe(model, version):
            raise RollbackRefused(f"smoke test: {fault}")
        return stored.value

    async def _record_differences(
        self, model: str, present: str, record: config_pb2.ModelVersion
    ) -> list[config_pb2.Difference]:
        stored = await self._store.read(keys.model_key(model, present), MODEL_VERSION)
        return differences(stored.value if stored else config_pb2.ModelVersion(), record)
