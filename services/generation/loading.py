"""From a version's record to a warm engine, station by station."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
import torch
from transformers import PreTrainedModel

from braid.config.v1.config_pb2 import ModelVersion
from services.chassis.documents import DocumentError, parse
from services.chassis.entries import Entry
from services.chassis.errors import RegistryUnavailable
from services.chassis.keys import model_key
from services.chassis.process import StartFailure
from services.chassis.registry import Registry
from services.generation.answering import Answering
from services.generation.card import CheckpointError
from services.generation.checkpoint import Checkpoint, load_model, read_checkpoint
from services.generation.device_memory import DeviceMemory
from services.generation.engine import Engine
from services.generation.experts import ExpertLoad
from services.generation.lifecycle import State, Stations
from services.generation.limits import Limits
from services.generation.memory_plan import MemoryPlan
from services.generation.metrics import WorkerMetrics
from services.generation.model import Model, model_of
from services.generation.model_size import size_of
from services.generation.planner import planner_of
from services.generation.reception import ServedModel, TrackedEngine
from services.generation.sequence import Family
from services.generation.settings import WorkerSettings
from services.generation.stored_tensors import stored_tensors
from services.generation.tensor_parallel import LeadModel, check_divides
from services.generation.types import Paradigm, ServedBy, VersionName
from services.generation.version_files import VersionFiles
from services.generation.warmup import WarmUp, self_test, warm_up
from services.generation.weights import WeightsUnavailable

ASK_AGAIN_S = 1.0
"""Between two tries of reading the record while etcd is down."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of worker: what it is called, how its models generate, what decodes them."""

    name: str
    paradigm: Paradigm
    open_family: Callable[[Checkpoint, PreTrainedModel], Family]


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
        self._registry = registry
        self._settings = settings
        self._kind = kind
        self._node_id = node_id
        self._metrics = metrics
        self._memory = memory
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
            record = await self._record(name, stations)
            folder = await self._files.bring(record, stations)
            stations.advance(State.LOADING)
            return (await asyncio.to_thread(self._read_weights, folder))[2]
        except CheckpointError as error:
            raise StartFailure(str(error)) from error

    def close(self) -> None:
        """Lets the other processes of a tensor-parallel worker end."""
        if self._lead is not None:
            self._lead.leave()

    async def _load(self, name: VersionName, stations: Stations) -> LoadedModel:
        record = await self._record(name, stations)
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

    async def _record(self, name: VersionName, stations: Stations) -> ModelVersion:
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
                stations.explain(f"waiting for etcd at {self._settings.etcd}")
                log.warning("registry_unavailable", reason=error.message)
                await asyncio.sleep(ASK_AGAIN_S)

    async def _start_engine(
        self, name: VersionName, folder: Path, uri: str
    ) -> tuple[LoadedModel, MemoryPlan]:
        checkpoint, plan, model, family = await asyncio.to_thread(self._read_weights, folder)
        settings, card = self._settings, checkpoint.card
        if settings.tensor_parallel > 1:
            model = self._lead = LeadModel(model)
        limits = settings.limits(card.max_context)
        engine = Engine(model, family, checkpoint.vocabulary, limits.for_engine())
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
        return LoadedModel(served, engine, calls, model.expert_load), plan

    def _read_weights(self, folder: Path) -> tuple[Checkpoint, MemoryPlan, Model, Family]:
        settings = self._settings
        if settings.threads:
            torch.set_num_threads(settings.threads)
        checkpoint = read_checkpoint(folder)
        if checkpoint.card.paradigm is not self._kind.paradigm:
            raise StartFailure(
                f"{folder}: is {checkpoint.card.family}, not for a {self._kind.name}"
            )
        plan = self._plan(checkpoint)
        module = load_model(checkpoint, settings.device, settings.dtype, settings.tensor_parallel)
        model = model_of(
            checkpoint.card,
            module,
            slots=plan.slots,
            max_context=plan.max_context,
            prefix_bytes=plan.prefix_bytes,
        )
        return checkpoint, plan, model, self._kind.open_family(checkpoint, module)

    def _plan(self, checkpoint: Checkpoint) -> MemoryPlan:
        """What it will take. Raises DoesNotFit before any of it is taken."""
        settings, tensors = self._settings, stored_tensors(checkpoint.folder)
        check_divides(checkpoint, settings.dtype, settings.tensor_parallel)
        plan = MemoryPlan(
            size_of(checkpoint, tensors, settings.dtype, settings.tensor_parallel),
            slots=settings.slots,
            max_context=settings.limits(checkpoint.card.max_context).max_context,
            prefix_bytes=settings.prefix_cache_bytes,
            room_bytes=self._memory.room_bytes,
        )
        log.info("memory_plan", **plan.figures())
        self._metrics.planned(plan)
        plan.check(str(checkpoint.folder))
        return plan

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
