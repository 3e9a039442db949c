"""An engine that answers by script, for tests of what is around an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from services.chassis.errors import ServiceError
from services.generation.stream import EventStream
from services.generation.types import Delta, Event, Finished, FinishReason, Job, Timing, Usage

Item = Event | ServiceError
Script = Callable[[Job], Sequence[Item]]


def say(
    text: str, reason: FinishReason = FinishReason.STOP, *, pieces: int = 1
) -> Callable[[Job], list[Item]]:
    """A script that says ``text`` in ``pieces`` deltas, one token a character."""

    def script(job: Job) -> list[Item]:
        size = max(-(-len(text) // pieces), 1)
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        deltas: list[Item] = [Delta(part, index) for index, part in enumerate(parts)]
        usage = Usage(
            prompt_tokens=len(job.prompt_ids),
            completion_tokens=len(text),
            denoise_steps=1,
            forward_passes=3,
            tokens_per_forward=len(text) / 2,
        )
        timing = Timing(queue=0.1, prefill=0.2, decode=0.3, first_output=0.4, total=0.6)
        return [*deltas, Finished(reason, usage, timing, seed=job.seed)]

    return script


class ScriptedEngine:
    """Answers each job by the next script, the last one again and again.

    A script without a Finished or an error at its end leaves the stream open.
    """

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.jobs: list[Job] = []
        self.given_up: list[Job] = []
        self.streams: list[EventStream] = []

    def submit(self, job: Job) -> EventStream:
        """Starts the job."""
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        self.jobs.append(job)
        stream = EventStream(lambda: self.given_up.append(job))
        for item in script(job):
            stream.count(item)
            stream.deliver(item)
        self.streams.append(stream)
        return stream
