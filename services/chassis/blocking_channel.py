"""A channel that looks like grpc.aio's to generated stubs and blocks its thread.

All loops of a process that use grpc.aio share one poller, which wakes every one of
them for each event of any: a second loop, however idle, makes each call of the first
dearer. A thread whose loop does little else than wait for its own calls takes this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio


class BlockingChannel:
    """Calls of one answer, and streams of one request and one answer."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def unary_unary(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """A call to be awaited that is over when it returns."""
        call = self._channel.unary_unary(*args, **options)

        async def answer(request: Any, timeout: float, metadata: Any = None) -> Any:
            return call(request, timeout=timeout, metadata=metadata)

        return answer

    def stream_stream(self, *args: Any, **options: Any) -> Callable[..., BlockingStream]:
        """A stream, begun by what is written first."""
        call = self._channel.stream_stream(*args, **options)

        def stream(timeout: float, metadata: Any = None) -> BlockingStream:
            return BlockingStream(
                lambda request: call(iter([request]), timeout=timeout, metadata=metadata)
            )

        return stream

    async def close(self) -> None:
        """Ends the connection."""
        self._channel.close()


class BlockingStream:
    """One exchange over a streaming call."""

    def __init__(self, begin: Callable[[Any], Any]) -> None:
        self._begin = begin
        self._answers: Any = None

    async def write(self, request: Any) -> None:
        """Sends the only request."""
        self._answers = self._begin(request)

    async def read(self) -> Any:
        """The next answer, or EOF."""
        return next(self._answers, grpc.aio.EOF)

    def cancel(self) -> None:
        """Ends the call."""
        if self._answers is not None:
            self._answers.cancel()
