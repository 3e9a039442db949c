"""Options of every gRPC connection: message limit, keepalive, reconnecting.

A denoising call may be silent for minutes, so both sides ping: a dead peer is
noticed within KEEPALIVE_S + KEEPALIVE_TIMEOUT_S, and no server answers pings
with GOAWAY (grpc's default policy would).
"""

from __future__ import annotations

import grpc
import grpc.aio

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""Largest request and largest answer, the same at the router and the workers."""

KEEPALIVE_S = 10
KEEPALIVE_TIMEOUT_S = 10
RECONNECT_MAX_S = 1.0

LEAST_TIME_S = 0.001
"""A call with no more time left than this is over: deadlines travel rounded up to it."""
CONNECT_S = 5
"""Longest time one attempt to connect may take; grpc calls it the minimum backoff."""

Options = tuple[tuple[str, int | str], ...]

_BOTH: Options = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", KEEPALIVE_S * 1000),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_S * 1000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

SERVER_OPTIONS: Options = (
    *_BOTH,
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
)

SHARED_OPTIONS: Options = (
    *(option for option in SERVER_OPTIONS if option[0] != "grpc.so_reuseport"),
    ("grpc.so_reuseport", 1),
)

CHANNEL_OPTIONS: Options = (
    *_BOTH,
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", CONNECT_S * 1000),
    ("grpc.max_reconnect_backoff_ms", int(RECONNECT_MAX_S * 1000)),
)


def open_channel(
    address: str, credentials: grpc.ChannelCredentials | None = None
) -> grpc.aio.Channel:
    """A channel to ``address`` (host:port) with these options; the caller closes it.

    Plain text without ``credentials``.
    """
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)
    return grpc.aio.secure_channel(address, credentials, options=CHANNEL_OPTIONS)
