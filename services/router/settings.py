"""What a router is told through its environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from services.chassis.ids import FORM, is_id, process_id
from services.chassis.settings import EtcdSettings, ProcessSettings


class RouterSettings(ProcessSettings, EtcdSettings):
    """Addresses and limits of one router."""

    node_id: str = Field("", description="id of this router; empty: from host name and process")
    host: str = Field("127.0.0.1", description="address that all ports listen on")
    port: int = Field(7100, ge=0, le=65535, description="inference port; 0: a free one")
    admin_port: int = Field(7101, ge=0, le=65535, description="RouterService's port; 0: a free one")
    ops_port: int = Field(7102, ge=0, le=65535, description="HTTP port of probes; 0: a free one")
    advertise_host: str = Field("", description="host that others reach it by; empty: the host")
    state_dir: Path | None = Field(
        None, description="folder of the last known registry, to start from while etcd is down"
    )
    default_deadline_s: float = Field(
        120, gt=0, description="longest life of a call without a deadline, s"
    )
    grace_s: float = Field(30, ge=0, description="longest wait for running calls at a stop, s")

    @property
    def own_id(self) -> str:
        """The router's id: the one set, or one of this host and process."""
        return self.node_id or process_id()

    @property
    def reachable_host(self) -> str:
        """The host in the registry record."""
        return self.advertise_host or self.host

    @property
    def snapshot_path(self) -> Path | None:
        """Where the last known registry is kept, if anywhere."""
        return self.state_dir.expanduser() / "registry.json" if self.state_dir else None

    @field_validator("node_id")
    @classmethod
    def _is_id(cls, value: str) -> str:
        if value and not is_id(value):
            raise ValueError(FORM)
        return value
