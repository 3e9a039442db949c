"""How the connections of a process are protected."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, FilePath, model_validator

from services.chassis.settings import Settings


class TlsSettings(Settings):
    """Certificate and authorities, for the ports of a process and for its own connections.

    The files are read again whenever they change.
    """

    tls_certificate: FilePath | None = Field(
        None, description="certificate chain file (PEM): shown on all ports and connections"
    )
    tls_key: FilePath | None = Field(None, description="key file of that certificate")
    tls_authority: FilePath | None = Field(
        None, description="CA file that others' certificates are checked by; empty: the system's"
    )
    tls_client_authority: FilePath | None = Field(
        None, description="CA file of clients' certificates alone; empty: the authority"
    )
    tls_require_client_certificate: bool = Field(
        False, description="refuse clients without a certificate of the client authority"
    )

    @property
    def tls(self) -> bool:
        """Whether the process's own connections use TLS; its ports do with a certificate."""
        return self.tls_certificate is not None or self.tls_authority is not None

    @property
    def client_authority(self) -> Path | None:
        """The CA file that clients' certificates are checked by."""
        return self.tls_client_authority or self.tls_authority

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if (self.tls_key is None) != (self.tls_certificate is None):
            raise ValueError(self._needs("tls_certificate", "tls_key") + ", and that needs it")
        if self.tls_require_client_certificate:
            if self.tls_certificate is None:
                raise ValueError(self._needs("tls_require_client_certificate", "tls_certificate"))
            if self.client_authority is None:
                raise ValueError(self._needs("tls_require_client_certificate", "tls_authority"))
        return self

    def _needs(self, field: str, other: str) -> str:
        return f"{self.variable(field)} needs {self.variable(other)}"
