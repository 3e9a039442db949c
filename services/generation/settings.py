"""Settings of a worker, the same for both paradigms."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from services.chassis.ids import FORM, is_id, is_version
from services.chassis.security.access import AccessSettings, is_loopback
from services.chassis.settings import EtcdSettings, NodeSettings, ProcessSettings
from services.generation.limits import Limits
from services.generation.types import VersionName


class WorkerSettings(ProcessSettings, EtcdSettings, NodeSettings, AccessSettings):
    """Everything an operator can say to a worker at its start."""

    group: str = Field(description="group of this node")
    model: str = Field(description="name of the model to serve")
    version: str = Field(description="its version, as recorded in etcd")
    port: int = Field(0, ge=0, le=65535, description="inference port; 0: a free one")
    admin_port: int = Field(0, ge=0, le=65535, description="management port; 0: a free one")
    ops_port: int = Field(0, ge=0, le=65535, description="HTTP port of probes; 0: a free one")
    cache_dir: Path = Field(
        Path("~/.cache/braid/models"), description="where fetched weights are kept"
    )
    cache_max_bytes: int = Field(
        0, ge=0, description="bound of that folder; least recently used files go first; 0: none"
    )
    fetch_parallel: int = Field(
        8, ge=1, le=64, description="ranges of 8 MiB that are fetched at once"
    )
    weight: int = Field(100, ge=0, le=1000, description="share within its version; 0: no traffic")
    labels: str = Field("", description="free facts for operators, key=value, comma separated")
    device: str = Field("cpu", description="torch device")
    dtype: Literal["auto", "float32", "bfloat16", "float16", "int8"] = Field(
        "auto",
        description="type of the weights in memory; auto: as stored; int8: linear layers in 8 bits"
        " by torchao (the int8 extra), the rest as stored",
    )
    tensor_parallel: int = Field(
        1, ge=1, le=64, description="processes that torchrun starts for it, which share the model"
    )
    threads: int = Field(0, ge=0, le=1024, description="CPU threads of torch; 0: torch's choice")
    slots: int = Field(8, ge=1, le=1024, description="KV slots: most calls that run at once")
    prefix_cache_bytes: int = Field(
        128 * 2**20,
        ge=0,
        description="memory for keys and values of prompt heads that calls share; 0: none",
    )
    queue_length: int = Field(64, ge=0, le=100_000, description="most calls waiting for a slot")
    max_concurrency: int = Field(
        256, ge=1, le=100_000, description="most calls running and waiting together"
    )
    max_new_tokens: int = Field(512, ge=1, description="most tokens one call may generate")
    max_context: int = Field(0, ge=0, description="most tokens of input and output; 0: the model's")
    max_steps: int = Field(64, ge=1, le=1024, description="most denoising steps per block")
    memory_limit_bytes: int = Field(
        0, ge=0, description="memory that is this worker's; 0: all of the device or container"
    )
    memory_fraction: float = Field(
        0.9,
        gt=0,
        le=1,
        description="of that, what a model may be planned to fill; above it the node is not ready",
    )
    call_timeout_s: float = Field(
        600, gt=0, description="longest life of a call without a deadline, s"
    )
    watchdog_s: float = Field(
        30, gt=0, description="time without a step after which a busy engine counts as stalled, s"
    )
    grace_s: float = Field(30, ge=0, description="longest wait for running calls at a stop, s")

    @property
    def name(self) -> VersionName:
        """The version that it starts with."""
        return VersionName(self.model, self.version)

    @property
    def label_map(self) -> dict[str, str]:
        """The labels as pairs."""
        pairs = (part.partition("=") for part in self.labels.split(",") if part.strip())
        return {key.strip(): value.strip() for key, _, value in pairs}

    def limits(self, model_context: int) -> Limits:
        """The limits of a worker with a model of ``model_context`` tokens."""
        return Limits(
            max_steps=self.max_steps,
            max_batch_size=self.slots,
            max_concurrency=self.max_concurrency,
            queue_length=self.queue_length,
            max_new_tokens=self.max_new_tokens,
            max_context=min(self.max_context or model_context, model_context),
        )

    @model_validator(mode="after")
    def _is_reached_by_routers_alone(self) -> Self:
        """A worker knows no callers: what a certificate does not keep out gets served."""
        protected = self.tls_require_client_certificate or self.plaintext
        if self.restricted and not (protected or is_loopback(self.host)):
            raise ValueError(
                f"{self.variable('access')}=callers needs "
                f"{self.variable('tls_require_client_certificate')}=true on a worker that other "
                "machines can reach"
            )
        return self

    @field_validator("group", "model", "version")
    @classmethod
    def _is_id(cls, value: str) -> str:
        if not is_id(value):
            raise ValueError(FORM)
        return value

    @field_validator("version")
    @classmethod
    def _stays(cls, value: str) -> str:
        if not is_version(value):
            raise ValueError(f"{value!r} would not stay the same version")
        return value

    @field_validator("labels")
    @classmethod
    def _are_pairs(cls, value: str) -> str:
        parts = [part for part in value.split(",") if part.strip()]
        if any(not part.partition("=")[0].strip() or "=" not in part for part in parts):
            raise ValueError("must be key=value, comma separated")
        return value
