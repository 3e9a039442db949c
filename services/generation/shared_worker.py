"""A tensor-parallel worker's processes: one serves, the others compute with it."""

from __future__ import annotations

import asyncio

from services.chassis.metrics import new_registry
from services.chassis.process import Stop
from services.chassis.registry import Registry
from services.generation.device_memory import DeviceMemory
from services.generation.kind import Kind
from services.generation.lifecycle import Lifecycle
from services.generation.loading import Loader
from services.generation.metrics import WorkerMetrics
from services.generation.model import Model
from services.generation.settings import WorkerSettings
from services.generation.tensor_parallel import device_of, follow, join
from services.generation.worker import run_worker


async def run_process(settings: WorkerSettings, stop: Stop, kind: Kind) -> None:
    """Runs this process's part of a worker, which is all of it where it has but one.

    Raises what run_worker raises.
    """
    if settings.tensor_parallel == 1:
        await run_worker(settings, stop, kind)
        return
    rank = join(settings.tensor_parallel, settings.device)
    own = settings.model_copy(update={"device": device_of(settings.device, rank)})
    if rank == 0:
        await run_worker(own, stop, kind)
    else:
        await _follow(own, stop, kind)


async def _follow(settings: WorkerSettings, stop: Stop, kind: Kind) -> None:
    """Ends when rank 0 does; a stop ends it only before it has begun."""
    async with Registry(settings) as registry, asyncio.TaskGroup() as tasks:
        loading = tasks.create_task(_part(settings, registry, kind))
        stopping = tasks.create_task(stop.wait())
        await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if loading.done():
            await asyncio.to_thread(follow, loading.result())
        else:
            loading.cancel()


async def _part(settings: WorkerSettings, registry: Registry, kind: Kind) -> Model:
    memory = DeviceMemory(settings.device, settings.memory_limit_bytes, settings.memory_fraction)
    metrics = WorkerMetrics(new_registry(kind.name))
    loader = Loader(registry, settings, kind, settings.own_id, metrics, memory)
    return await loader.load_part(settings.name, Lifecycle())
