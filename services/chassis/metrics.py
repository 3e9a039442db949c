"""What every process exports beside its own metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Info, PlatformCollector, ProcessCollector

from services import __version__


def new_registry(service: str) -> CollectorRegistry:
    """A registry of its own for one process: nothing global, so tests can have many."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    build = Info("braid_build", "Version and service of this process.", registry=registry)
    build.info({"service": service, "version": __version__})
    return registry
