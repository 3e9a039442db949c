"""One call as logs and metrics see it: figures, never content."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

import structlog

from services.chassis.errors import ServiceError
from services.generation.metrics import WorkerMetrics
from services.generation.types import Finished, Request

log = structlog.get_logger()

_UNREAD = "TASK_UNSPECIFIED"


class Observation:
    """Logs and counts one call when its block ends, however it ends.

    Used inside the call's own task: what the task logs from ``read`` on carries
    the request's id.
    """

    def __init__(self, metrics: WorkerMetrics) -> None:
        self.finished: Finished | None = None
        self._metrics = metrics
        self._request: Request | None = None
        self._started = time.monotonic()

    def read(self, request: Request) -> None:
        """Notes the request once it is known to be one."""
        self._request = request
        structlog.contextvars.bind_contextvars(request_id=request.request_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        code, reason = self._outcome(error)
        seconds = time.monotonic() - self._started
        task = self._request.task if self._request else _UNREAD
        self._metrics.ended(task, code, seconds)
        if code == "OK" and self.finished is not None:
            self._metrics.answered(task, self.finished)
        log.info(
            "request_finished",
            request_id=self._request.request_id if self._request else "",
            task=task,
            code=code,
            reason=reason,
            duration_s=round(seconds, 6),
            **_figures(self.finished),
        )

    def _outcome(self, error: BaseException | None) -> tuple[str, str]:
        """Status code and reason of the call's end."""
        if error is None:
            return "OK", ""
        if isinstance(error, ServiceError):
            return error.code.name, error.reason
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            late = self._request is not None and _passed(self._request.deadline)
            return ("DEADLINE_EXCEEDED" if late else "CANCELLED"), ""
        return "INTERNAL", type(error).__name__


def _passed(deadline: float | None) -> bool:
    return deadline is not None and deadline <= time.monotonic()


def _figures(finished: Finished | None) -> dict[str, object]:
    if finished is None:
        return {}
    usage, timing = finished.usage, finished.timing
    return {
        "finish_reason": finished.finish_reason.value,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "tokens": usage.completion_tokens,
        "denoise_steps": usage.denoise_steps,
        "forward_passes": usage.forward_passes,
        "queue_s": round(timing.queue, 6),
        "first_output_s": round(timing.first_output, 6),
        "best_effort": finished.best_effort,
        "repairs": finished.repairs,
    }
