"""Certificates of a process, taken from files again whenever those change."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import structlog

from services.chassis.channel import open_channel
from services.chassis.process import EXIT_USAGE, StartFailure
from services.chassis.security.settings import TlsSettings

LOOK_EVERY_S = 1.0
"""Between two looks at the files; a server looks at each new connection as well."""

log = structlog.get_logger()

Dial = Callable[[str], grpc.aio.Channel]
"""Opens a channel to host:port; whoever calls it closes it."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the files hold, as PEM."""

    certificate: bytes | None
    key: bytes | None
    authority: bytes | None
    client_authority: bytes | None


class Tls:
    """Credentials for the ports of a process and for its own connections.

    Files that do not fit each other, as halfway through a rotation, leave the former
    ones in force. Connections that stand are never touched by a change.
    """

    def __init__(self, settings: TlsSettings) -> None:
        """Raises StartFailure where the files cannot be used."""
        self._settings = settings
        self._lock = threading.Lock()
        try:
            self._seen = _read(settings)
            _check(settings, self._seen)
        except (OSError, ssl.SSLError) as error:
            raise StartFailure(f"TLS files: {error}", EXIT_USAGE) from None
        self._material = self._seen

    @classmethod
    def of(cls, settings: TlsSettings) -> Tls | None:
        """The TLS that the settings ask for, if any."""
        return cls(settings) if settings.tls else None

    def current(self) -> Material:
        """What is in force, after a look at the files. May be called from any thread."""
        with self._lock:
            try:
                self._look()
            except (OSError, ssl.SSLError) as error:
                log.warning("certificates_refused", reason=str(error))
            return self._material

    def _look(self) -> None:
        found = _read(self._settings)
        if found == self._seen:
            return
        self._seen = found
        _check(self._settings, found)
        if found == _read(self._settings):
            self._material = found
            log.info("certificates_reloaded")

    def server_credentials(self) -> grpc.ServerCredentials | None:
        """For a port: each new connection is met with the certificate then in force."""
        if self._settings.tls_certificate is None:
            return None
        last = self._material

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            nonlocal last
            material = self.current()
            if material is last:
                return None
            last = material
            return _server_configuration(material)

        return grpc.dynamic_ssl_server_credentials(
            _server_configuration(last),
            fetch,  # type: ignore[arg-type]  # None is "no change", which the stub leaves out
            self._settings.tls_require_client_certificate,
        )

    def dial(self, address: str) -> grpc.aio.Channel:
        """A channel with the certificate now in force."""
        found = self.current()
        credentials = grpc.ssl_channel_credentials(found.authority, found.key, found.certificate)
        return open_channel(address, credentials)

    async def follow(self, changed: Callable[[], None]) -> None:
        """Calls ``changed`` after each change, for those who keep channels; runs for ever."""
        known = self._material
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            found = await asyncio.to_thread(self.current)
            if found is not known:
                known = found
                changed()


def dial_of(tls: Tls | None) -> Dial:
    """How a process with this TLS connects to others."""
    return tls.dial if tls else open_channel


def server_credentials_of(tls: Tls | None) -> grpc.ServerCredentials | None:
    """What the ports of a process with this TLS show; None: they speak plain text."""
    return tls.server_credentials() if tls else None


def _server_configuration(material: Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key or b"", material.certificate or b"")], material.client_authority
    )


def _read(settings: TlsSettings) -> Material:
    return Material(
        certificate=_bytes(settings.tls_certificate),
        key=_bytes(settings.tls_key),
        authority=_bytes(settings.tls_authority),
        client_authority=_bytes(settings.client_authority),
    )


def _bytes(path: Path | None) -> bytes | None:
    return path.read_bytes() if path else None


def _check(settings: TlsSettings, material: Material) -> None:
    """Raises ssl.SSLError where a key is not the certificate's, or a file holds no certificate.

    gRPC itself would take such files, and refuse every connection after.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if settings.tls_certificate and settings.tls_key:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    for authority in (material.authority, material.client_authority):
        if authority:
            context.load_verify_locations(cadata=authority.decode("ascii", "replace"))
