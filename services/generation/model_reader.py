"""From a version's verified folder to its model in memory, if there is room for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import structlog
import torch

from services.chassis.process import StartFailure
from services.generation.checkpoint import Checkpoint, load_model, read_checkpoint
from services.generation.device_memory import DeviceMemory
from services.generation.kind import Kind
from services.generation.memory_plan import MemoryPlan
from services.generation.metrics import WorkerMetrics
from services.generation.model import Model, model_of
from services.generation.model_size import size_of
from services.generation.sequence import Family
from services.generation.settings import WorkerSettings
from services.generation.stored_tensors import stored_tensors
from services.generation.tensor_parallel import check_divides

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A model that is in memory, and what was found on the way."""

    checkpoint: Checkpoint
    plan: MemoryPlan
    model: Model
    family: Family


class ModelReader:
    """Reads checkpoints as the settings say; its calls block."""

    def __init__(
        self, settings: WorkerSettings, kind: Kind, metrics: WorkerMetrics, memory: DeviceMemory
    ) -> None:
        self._settings = settings
        self._kind = kind
        self._metrics = metrics
        self._memory = memory

    def read(self, folder: Path) -> ReadModel:
        """Raises CheckpointError for a bad folder, StartFailure for one that is not for here."""
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
        return ReadModel(checkpoint, plan, model, self._kind.open_family(checkpoint, module))

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
