"""Which etcd member to talk to, and how a channel to it is opened."""

from __future__ import annotations

import grpc
import grpc.aio

from services.chassis.blocking_channel import BlockingChannel
from services.chassis.settings import EtcdSettings

# etcd closes connections that ping more often than every 5 s, or that ping while
# nothing runs. Proxies of the environment are for the outside world, not for etcd.
# Each channel has its own connection, so that a new channel is a new connection.
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_time_ms", 6_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)


class Endpoints:
    """The members in turn: the current one until it fails."""

    def __init__(self, settings: EtcdSettings, *, blocking: bool = False) -> None:
        self._settings = settings
        self._blocking = blocking
        self._addresses = settings.etcd_endpoints
        self._position = 0

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def current(self) -> str:
        """host:port to use now."""
        return self._addresses[self._position]

    def leave(self, address: str) -> None:
        """Moves on after a failure of ``address``, unless another call did so already."""
        if address == self.current:
            self._position = (self._position + 1) % len(self._addresses)

    def open(self, address: str) -> grpc.aio.Channel | BlockingChannel:
        """A channel with a connection of its own; files are read anew, as certificates change."""
        credentials = _credentials(self._settings) if self._settings.etcd_tls else None
        if self._blocking:
            return BlockingChannel(_blocking_channel(address, credentials))
        if credentials is None:
            return grpc.aio.insecure_channel(address, options=_OPTIONS)
        return grpc.aio.secure_channel(address, credentials, options=_OPTIONS)


def _blocking_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    if credentials is None:
        return grpc.insecure_channel(address, options=_OPTIONS)
    return grpc.secure_channel(address, credentials, options=_OPTIONS)


def _credentials(settings: EtcdSettings) -> grpc.ChannelCredentials:
    ca, cert, key = (
        path.read_bytes() if path else None
        for path in (settings.etcd_ca, settings.etcd_cert, settings.etcd_key)
    )
    return grpc.ssl_channel_credentials(ca, key, cert)
