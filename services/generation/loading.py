"""From a version's record to a warm engine, station by station."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from braid.config.v1.config_pb2 import ModelVersion
from services.chassis.process import StartFailure
from services.chassis.registry import Registry
from services.generation.answering import Answering
from services.generation.card import CheckpointError
from services.generation.device_memory import DeviceMemory
from services.generation.engine import Engine
from services.generation.experts import ExpertLoad
from services.generation.kind import Kind
from services.generation.lifecycle import State, Stations
from services.generation.limits import Limits
from services.generation.memory_plan import MemoryPlan
from services.generation.metrics import WorkerMetrics
from services.generation.model import Model
from services.generation.model_reader import ModelReader
from services.generation.planner import planner_of
from services.generation.reception import ServedModel, TrackedEngine
from services.generation.settings import WorkerSettings
from services.generation.tensor_parallel import LeadModel
from services.generation.types import ServedBy, VersionName
from services.generation.version_files import VersionFiles
from services.generation.version_record import VersionRecords
from services.generation.warmup import WarmUp, self_test, warm_up

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LoadFacts:
    """What a load found on its way."""

    record: ModelVersion
    folder: Path
    plan: MemoryPlan
    warm: WarmUp


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A warm model with its engine; whoever gets it stops the engine."""

    served: ServedModel
    engine: Engine
    calls: TrackedEngine
    expert_load: ExpertLoad
    facts: LoadFacts | None = None
    """None where no Loader made it."""

    @property
    def own_limits(self) -> Limits:
        """Its limits before the group's."""
        return self.served.limits


class Loader:
    """Brings versions from their record to a warm engine."""

    def __init__(
        self,
        registry: Registry,
        settings: WorkerSettings,
        kind: Kind,
        node_id: str,
        metrics: WorkerMetrics,
        memory: DeviceMemory,
    ) -> None:
        self._settings = settings
        self._node_id = node_id
        self._metrics = metrics
        self._records = VersionRecords(registry, settings.etcd)
        self._reader = ModelReader(settings, kind, metrics, memory)
        self._files = VersionFiles(settings, metrics)
        self._lead: LeadModel | None = None

    async def load(self, name: VersionName, stations: Stations) -> LoadedModel:
        """Tells ``stations`` how far it is.

        Raises StartFailure with what an operator can mend; nothing stays half loaded.
        """
        if self._lead is not None:
            raise StartFailure("a tensor-parallel worker serves the version it started with")
        try:
            return await self._load(name, stations)
        except CheckpointError as error:
            raise StartFailure(str(error)) from error

    async def load_part(self, name: VersionName, stations: Stations) -> Model:
        """What another process of a tensor-parallel worker has of the model. Raises as load."""
        try:
            record = await self._records.read(name, stations)
            folder = await self._files.bring(record, stations)
            stations.advance(State.LOADING)
            return (await asyncio.to_thread(self._reader.read, folder)).model
        except CheckpointError as error:
            raise StartFailure(str(error)) from error

    def close(self) -> None:
        """Lets the other processes of a tensor-parallel worker end."""
        if self._lead is not None:
            self._lead.leave()

    async def _load(self, name: VersionName, stations: Stations) -> LoadedModel:
        record = await self._records.read(name, stations)
        folder = await self._files.bring(record, stations)
        stations.advance(State.LOADING)
        loaded, plan = await self._start_engine(name, folder, record.uri)
        try:
            stations.advance(State.WARMING)
            warm = await self._warm_up(loaded.served)
        except BaseException:
            await loaded.engine.stop()
            raise
        return replace(loaded, facts=LoadFacts(record, folder, plan, warm))

    async def _start_engine(
        self, name: VersionName, folder: Path, uri: str
    ) -> tuple[LoadedModel, MemoryPlan]:
        read = await asyncio.to_thread(self._reader.read, folder)
        settings, checkpoint, model = self._settings, read.checkpoint, read.model
        card = checkpoint.card
        if settings.tensor_parallel > 1:
            model = self._lead = LeadModel(model)
        limits = settings.limits(card.max_context)
        engine = Engine(model, read.family, checkpoint.vocabulary, limits.for_engine())
        calls = TrackedEngine(engine)
        planner = planner_of(checkpoint)
        served = ServedModel(
            served_by=ServedBy(
                self._node_id, settings.group, name.model, name.version, card.paradigm
            ),
            card=card,
            planner=planner,
            answering=Answering(calls, planner, self._metrics.constraint_violations.inc),
            limits=limits,
            weights_uri=uri,
        )
        engine.start()
        return LoadedModel(served, engine, calls, model.expert_load), read.plan

    async def _warm_up(self, served: ServedModel) -> WarmUp:
        warm = await warm_up(served)
        await self_test(served)
        self._metrics.warmup_seconds.set(warm.total_s)
        log.info(
            "warmed_up",
            version=str(served.served_by.name),
            seconds=round(warm.total_s, 3),
            first_s=round(warm.first_s, 4),
            last_s=round(warm.last_s, 4),
            golden_prompts=len(served.card.self_test),
        )
        return warm


def reason_of_failure(error: Exception) -> str:
    """What an operator can mend in its own words; any other fault by its name."""
    mendable = isinstance(error, StartFailure | CheckpointError)
    return str(error) if mendable else type(error).__name__
