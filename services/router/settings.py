"""What a router is told through its environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.chassis.security.access import AccessSettings
from services.chassis.settings import EtcdSettings, NodeSettings, ProcessSettings


class RouterSettings(ProcessSettings, EtcdSettings, NodeSettings, AccessSettings):
    """Addresses and limits of one router."""

    port: int = Field(7100, ge=0, le=65535, description="inference port; 0: a free one")
    admin_port: int = Field(7101, ge=0, le=65535, description="RouterService's port; 0: a free one")
    ops_port: int = Field(7102, ge=0, le=65535, description="HTTP port of probes; 0: a free one")
    state_dir: Path | None = Field(
        None, description="folder of the last known registry, to start from while etcd is down"
    )
    default_deadline_s: float = Field(
        120, gt=0, description="longest life of a call without a deadline, s"
    )
    queue_length: int = Field(
        256, ge=0, le=100_000, description="calls that may wait for a node, per group"
    )
    processes: int = Field(
        1, ge=1, le=64, description="processes on the inference port, each a router of its own"
    )
    port_shared: bool = Field(
        False, description="the inference port is shared; set by the parent of several processes"
    )
    grace_s: float = Field(30, ge=0, description="longest wait for running calls at a stop, s")

    @property
    def snapshot_path(self) -> Path | None:
        """Where the last known registry is kept, if anywhere."""
        return self.state_dir.expanduser() / "registry.json" if self.state_dir else None
