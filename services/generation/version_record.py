"""A version's record in the registry, which says what its files are."""

from __future__ import annotations

import asyncio

import structlog

from braid.config.v1.config_pb2 import ModelVersion
from services.chassis.documents import DocumentError, parse
from services.chassis.entries import Entry
from services.chassis.errors import RegistryUnavailable
from services.chassis.keys import model_key
from services.chassis.registry import Registry
from services.generation.lifecycle import Stations
from services.generation.types import VersionName
from services.generation.weights import WeightsUnavailable

ASK_AGAIN_S = 1.0
"""Between two tries of reading the record while etcd is down."""

log = structlog.get_logger()


class VersionRecords:
    """Reads records; ``etcd`` is what it says it waits for."""

    def __init__(self, registry: Registry, etcd: str) -> None:
        self._registry = registry
        self._etcd = etcd

    async def read(self, name: VersionName, stations: Stations) -> ModelVersion:
        """The record of this very version. Raises WeightsUnavailable."""
        key = model_key(name.model, name.version)
        entry = await self._read(key, stations)
        if entry is None:
            raise WeightsUnavailable(f"{key} is not recorded in etcd; register {name} first")
        try:
            record = parse(key, entry.value, ModelVersion)
        except DocumentError as error:
            raise WeightsUnavailable(str(error)) from None
        if (record.model, record.version) != (name.model, name.version):
            raise WeightsUnavailable(f"{key} is the record of {record.model} {record.version}")
        return record

    async def _read(self, key: str, stations: Stations) -> Entry | None:
        """Waits for an etcd that is down, for as long as it takes."""
        while True:
            try:
                return await self._registry.get(key)
            except RegistryUnavailable as error:
                stations.explain(f"waiting for etcd at {self._etcd}")
                log.warning("registry_unavailable", reason=error.message)
                await asyncio.sleep(ASK_AGAIN_S)
