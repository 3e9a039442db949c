"""Who may call a process."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from services.chassis.security.settings import TlsSettings

LEAST_KEY_LENGTH = 32


class AccessSettings(TlsSettings):
    """Open to whoever can connect, or to known callers and operators alone.

    Open without being told to only where nobody but this machine can connect.
    """

    host: str = Field("127.0.0.1", description="address that all ports listen on")
    access: Literal["open", "callers"] | None = Field(
        None,
        description="open: to all who can connect; callers: to known ones; empty: open, on "
        "loopback only",
    )
    plaintext: bool = Field(
        False, description="let keys travel without TLS: a proxy in front of this process has it"
    )
    operator_key: SecretStr | None = Field(
        None, description="a key that is an operator's, whatever is stored in etcd"
    )

    @property
    def restricted(self) -> bool:
        """Whether only known callers and operators are served."""
        return self.access == "callers"

    @model_validator(mode="after")
    def _is_deliberate(self) -> Self:
        if is_loopback(self.host):
            return self
        where = f"{self.variable('host')}={self.host} can be reached from other machines"
        access = self.variable("access")
        if self.access is None:
            raise ValueError(f"{where}: say {access}=callers, or {access}=open to serve anybody")
        if self.restricted and not (self.tls_certificate or self.plaintext):
            needed, waiver = self.variable("tls_certificate"), self.variable("plaintext")
            raise ValueError(
                f"{where}, and keys would travel unprotected: set {needed}, or {waiver}=true"
            )
        return self

    @model_validator(mode="after")
    def _key_is_strong(self) -> Self:
        if self.operator_key and len(self.operator_key.get_secret_value()) < LEAST_KEY_LENGTH:
            raise ValueError(
                f"{self.variable('operator_key')} must have {LEAST_KEY_LENGTH} characters or more"
            )
        return self


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to ``host``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
