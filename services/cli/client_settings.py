"""What a command sends to show who it is."""

from __future__ import annotations

from pydantic import Field, SecretStr

from services.chassis.security.access import is_loopback
from services.chassis.security.settings import TlsSettings


class ClientSettings(TlsSettings):
    """A command's certificate and key, from the environment alone."""

    api_key: SecretStr | None = Field(None, description="API key of the caller or operator")
    plaintext: bool = Field(False, description="send the key without TLS to other machines")

    def may_send_key(self, address: str) -> bool:
        """Whether a key can go to ``address`` (host:port) without strangers reading it."""
        return self.tls or self.plaintext or is_loopback(address.rpartition(":")[0].strip("[]"))
