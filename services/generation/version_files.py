"""A version's files on their way from its store to a verified folder, told station by station."""

from __future__ import annotations

import asyncio
from pathlib import Path

from braid.config.v1.config_pb2 import ModelVersion
from services.generation.lifecycle import State, Stations
from services.generation.metrics import WorkerMetrics
from services.generation.settings import WorkerSettings
from services.generation.weights import FetchPolicy, WeightCache


class VersionFiles:
    """Fetches into the cache that the settings name; counts what had to be set aside."""

    def __init__(self, settings: WorkerSettings, metrics: WorkerMetrics) -> None:
        self._settings = settings
        self._metrics = metrics

    async def bring(self, record: ModelVersion, stations: Stations) -> Path:
        """The verified folder; ``stations`` stand at VERIFYING then.

        Raises WeightsUnavailable and WeightsMismatch. Cancelled, it ends the
        fetch, which the next one goes on with.
        """
        cache = self._cache(stations)
        try:
            stations.explain(f"from {record.uri}")
            folder = await asyncio.to_thread(cache.fetch, record)
            stations.advance(State.VERIFYING)
            return await asyncio.to_thread(cache.verify, record, folder)
        finally:
            cache.stop()

    def _cache(self, stations: Stations) -> WeightCache:
        settings, loop = self._settings, asyncio.get_running_loop()
        return WeightCache(
            settings.cache_dir,
            FetchPolicy(parallel=settings.fetch_parallel),
            max_bytes=settings.cache_max_bytes,
            mismatched=self._metrics.weights_mismatches.inc,
            tell=lambda words: loop.call_soon_threadsafe(stations.explain, words),
        )
