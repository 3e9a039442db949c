"""Settings: read once from the environment, typed, frozen, validated.

A field ``max_steps`` is the variable ``BRAID_MAX_STEPS``; a value that must not
stand in an environment comes from the file that ``BRAID_MAX_STEPS_FILE`` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FilePath,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from services.chassis.ids import FORM, is_id, process_id

PREFIX = "BRAID_"


class SettingError(ValueError):
    """A variable is missing or wrong; the message names it."""


class Settings(BaseModel):
    """Base of every service's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Reads and validates; raises SettingError naming each bad variable.

        An empty variable counts as unset.
        """
        values = {name: _read(cls.variable(name), environ) for name in cls.model_fields}
        given = {name: value for name, value in values.items() if value is not None}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise SettingError(cls._describe(error)) from None

    @classmethod
    def variable(cls, field: str) -> str:
        """Name of the variable that sets ``field``."""
        return PREFIX + field.upper()

    @classmethod
    def sources(cls, environ: Mapping[str, str]) -> dict[str, str]:
        """By field, what sets it: a variable, a variable with its file, or ``default``."""
        return {name: _source(cls.variable(name), environ) for name in cls.model_fields}

    @classmethod
    def help(cls) -> str:
        """One line per variable: name, default and meaning, for ``--help``."""
        return "\n".join(cls._help_line(name) for name in cls.model_fields)

    @classmethod
    def _help_line(cls, name: str) -> str:
        field = cls.model_fields[name]
        default = "required" if field.is_required() else f"default {field.default!r}"
        return f"  {cls.variable(name):34} {field.description or ''} ({default})"

    @classmethod
    def _describe(cls, error: ValidationError) -> str:
        faults = (
            f"{cls.variable(str(fault['loc'][0]))}: {fault['msg']}"
            if fault["loc"]
            else fault["msg"].removeprefix("Value error, ")  # of several fields, which it names
            for fault in error.errors(include_url=False, include_input=False)
        )
        return "; ".join(faults)


class ProcessSettings(Settings):
    """What every service process can be told."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least level that is logged"
    )


class EtcdSettings(Settings):
    """Where etcd is and how to log in; part of every service's settings."""

    etcd: str = Field("127.0.0.1:2379", description="etcd endpoints, host:port, comma separated")
    etcd_user: str = Field("", description="etcd user; empty: no login")
    etcd_password: SecretStr | None = Field(None, description="password of the etcd user")
    etcd_ca: FilePath | None = Field(None, description="CA file for etcd; turns TLS on")
    etcd_cert: FilePath | None = Field(None, description="client certificate file for etcd")
    etcd_key: FilePath | None = Field(None, description="key file of that certificate")
    lease_ttl_s: int = Field(10, ge=2, le=600, description="life of a lease without heartbeat, s")

    @property
    def etcd_endpoints(self) -> tuple[str, ...]:
        """host:port of each member."""
        return tuple(_without_scheme(part) for part in self.etcd.split(","))

    @property
    def etcd_tls(self) -> bool:
        """Whether connections to etcd are encrypted."""
        return self.etcd_ca is not None or "https://" in self.etcd

    @field_validator("etcd")
    @classmethod
    def _has_endpoints(cls, value: str) -> str:
        for part in value.split(","):
            host, colon, port = _without_scheme(part).rpartition(":")
            if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
                raise ValueError(f"{part.strip()!r} is not host:port")
        return value

    @field_validator("etcd_password")
    @classmethod
    def _goes_with_user(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if bool(value) != bool(info.data.get("etcd_user")):
            raise ValueError(f"needs {cls.variable('etcd_user')}, and that needs it")
        return value

    @field_validator("etcd_key")
    @classmethod
    def _goes_with_cert(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if (value is None) != (info.data.get("etcd_cert") is None):
            raise ValueError(f"needs {cls.variable('etcd_cert')}, and that needs it")
        return value


class NodeSettings(Settings):
    """What a process that others find through the registry is told about itself."""

    node_id: str = Field("", description="id of this process; empty: from host name and process")
    host: str = Field("127.0.0.1", description="address that all ports listen on")
    advertise_host: str = Field("", description="host that others reach it by; empty: the host")

    @property
    def own_id(self) -> str:
        """The id set, or one of this host and process."""
        return self.node_id or process_id()

    @property
    def reachable_host(self) -> str:
        """The host in the registry record."""
        return self.advertise_host or self.host

    @field_validator("node_id")
    @classmethod
    def _is_id_or_empty(cls, value: str) -> str:
        if value and not is_id(value):
            raise ValueError(FORM)
        return value

    @field_validator("advertise_host")
    @classmethod
    def _can_be_reached(cls, value: str) -> str:
        if value in ("0.0.0.0", "::"):
            raise ValueError("nobody can connect to that address")
        return value


def _without_scheme(endpoint: str) -> str:
    return endpoint.strip().removeprefix("http://").removeprefix("https://").rstrip("/")


def _source(variable: str, environ: Mapping[str, str]) -> str:
    if environ.get(variable):
        return variable
    path = environ.get(variable + "_FILE")
    return f"{variable}_FILE={path}" if path else "default"


def _read(variable: str, environ: Mapping[str, str]) -> str | None:
    """The variable's value, or the content of the file that VARIABLE_FILE names."""
    path = environ.get(variable + "_FILE")
    if not path:
        return environ.get(variable) or None
    if environ.get(variable):
        raise SettingError(f"{variable}: set it or {variable}_FILE, not both")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\n") or None
    except OSError as error:
        raise SettingError(f"{variable}_FILE: {error.strerror}: {path}") from None
