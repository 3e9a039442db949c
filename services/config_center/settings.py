"""What a config center is told through its environment."""

from __future__ import annotations

from pydantic import Field

from services.chassis.security.access import AccessSettings
from services.chassis.settings import EtcdSettings, ProcessSettings


class ConfigCenterSettings(EtcdSettings, ProcessSettings, AccessSettings):
    """Addresses and limits of one config center."""

    port: int = Field(7300, ge=0, le=65535, description="port of ConfigService; 0: any free one")
    ops_port: int = Field(7301, ge=0, le=65535, description="HTTP ops port; 0: any free one")
    grace_s: float = Field(10.0, ge=0, description="seconds that running calls get at a stop")
