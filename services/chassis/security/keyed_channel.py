"""A channel whose every call carries an API key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import grpc.aio

from services.chassis.security.callers import AUTHORIZATION_KEY


def keyed(channel: grpc.aio.Channel, api_key: str) -> grpc.aio.Channel:
    """``channel`` for generated stubs, with the key on each call. Close the channel itself."""
    return cast("grpc.aio.Channel", _KeyedChannel(channel, api_key))


class _KeyedChannel:
    def __init__(self, channel: grpc.aio.Channel, api_key: str) -> None:
        self._channel = channel
        self._pair = (AUTHORIZATION_KEY, f"Bearer {api_key}")

    def __getattr__(self, kind: str) -> Callable[..., Callable[..., Any]]:
        """``unary_unary`` and the other three, which make a call of each RPC."""
        make = getattr(self._channel, kind)

        def call_of(*rpc: Any, **options: Any) -> Callable[..., Any]:
            call = make(*rpc, **options)

            def with_key(*request: Any, metadata: Any = (), **terms: Any) -> Any:
                return call(*request, metadata=(*(metadata or ()), self._pair), **terms)

            return with_key

        return call_of
