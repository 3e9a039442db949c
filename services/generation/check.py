"""A dry run of a worker: everything up to the first request, told in plain lines."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version

import torch

from services import __version__
from services.chassis.keys import model_key
from services.chassis.metrics import new_registry
from services.chassis.process import StartFailure, Stop
from services.chassis.registry import Registry
from services.generation.device_memory import DeviceMemory
from services.generation.kind import Kind
from services.generation.lifecycle import Lifecycle
from services.generation.loading import LoadedModel, Loader, LoadFacts
from services.generation.memory_plan import in_words
from services.generation.metrics import WorkerMetrics
from services.generation.settings import WorkerSettings

_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "grpcio", "protobuf")

Lines = Iterator[tuple[str, str]]


async def check_worker(
    settings: WorkerSettings, sources: Mapping[str, str], stop: Stop, kind: Kind
) -> None:
    """Loads and warms the version up without a port or a key in the registry.

    Prints what it finds as it goes. Raises what a start would raise, and
    RegistryUnavailable where a start would wait for etcd.
    """
    if settings.tensor_parallel > 1:
        raise StartFailure("--check is for a worker of one process")
    memory = DeviceMemory(settings.device, settings.memory_limit_bytes, settings.memory_fraction)
    _print("settings", _settings(settings, sources))
    _print("versions", _versions())
    _print("device", _device(settings, memory))
    loaded = await _load(settings, stop, kind, memory)
    try:
        if loaded.facts is not None:
            _print("files", _files(loaded.facts))
            _print("memory plan", _plan(loaded.facts))
            _print("model", _model(loaded, loaded.facts))
    finally:
        await loaded.engine.stop()
    print("check passed")


async def _load(
    settings: WorkerSettings, stop: Stop, kind: Kind, memory: DeviceMemory
) -> LoadedModel:
    metrics = WorkerMetrics(new_registry(kind.name))
    async with Registry(settings) as registry, asyncio.TaskGroup() as tasks:
        await registry.get(model_key(settings.model, settings.version))
        loader = Loader(registry, settings, kind, settings.own_id, metrics, memory)
        loading = tasks.create_task(loader.load(settings.name, Lifecycle()))
        stopping = tasks.create_task(stop.wait())
        await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not loading.done():
            loading.cancel()
            raise StartFailure("stopped before the check was through")
        return await loading


def _settings(settings: WorkerSettings, sources: Mapping[str, str]) -> Lines:
    for name, source in sources.items():
        yield name, f"{getattr(settings, name)}  ({source})"


def _versions() -> Lines:
    yield "braid", __version__
    yield "python", platform.python_version()
    for package in _PACKAGES:
        yield package, version(package)


def _device(settings: WorkerSettings, memory: DeviceMemory) -> Lines:
    on_gpu = settings.device.startswith("cuda")
    yield "name", torch.cuda.get_device_name(settings.device) if on_gpu else platform.machine()
    yield "threads", str(settings.threads or torch.get_num_threads())
    yield "memory", in_words(memory.total_bytes)
    yield "used", in_words(memory.used_bytes)
    yield "room", f"{in_words(memory.room_bytes)} up to the ceiling of {memory.ceiling_bytes} bytes"


def _files(facts: LoadFacts) -> Lines:
    yield "uri", facts.record.uri
    yield "folder", str(facts.folder)
    for file in facts.record.files:
        yield file.path, f"{in_words(file.size_bytes)}, sha256 {file.sha256.lower()}"


def _plan(facts: LoadFacts) -> Lines:
    for name, figure in facts.plan.figures().items():
        yield name, in_words(figure) if name.endswith("_bytes") else str(figure)


def _model(loaded: LoadedModel, facts: LoadFacts) -> Lines:
    card, warm = loaded.served.card, facts.warm
    yield "version", str(loaded.served.served_by.name)
    yield "family", card.family
    yield "max_context", str(loaded.served.limits.max_context)
    yield "warm-up", f"{warm.total_s:.2f} s"
    yield "first answer", f"{warm.first_s:.4f} s"
    yield "same answer, warm", f"{warm.last_s:.4f} s"
    yield "golden prompts", f"{len(card.self_test)} right"


def _print(title: str, lines: Lines) -> None:
    print(f"{title}:")
    for name, text in lines:
        print(f"  {name:24} {text}", flush=True)
