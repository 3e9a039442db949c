"""Settings: read once from the environment, typed, frozen, validated.

A field ``max_steps`` is the variable ``BRAID_MAX_STEPS``; a value that must not
stand in an environment comes from the file that ``BRAID_MAX_STEPS_FILE`` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
            f"{cls.variable(str(fault['loc'][0])) if fault['loc'] else 'settings'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        return "; ".join(faults)


class ProcessSettings(Settings):
    """What every service process can be told."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least level that is logged"
    )


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
