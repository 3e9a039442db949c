"""Events to messages."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2 as pb
from services.generation.types import (
    Delta,
    Draft,
    Event,
    Finished,
    FinishReason,
    Paradigm,
    Request,
    ServedBy,
    Timing,
    Usage,
)

PARADIGMS = {
    Paradigm.DIFFUSION: pb.PARADIGM_DIFFUSION,
    Paradigm.AUTOREGRESSIVE: pb.PARADIGM_AUTOREGRESSIVE,
}
_FINISH_REASONS = {
    FinishReason.STOP: pb.FINISH_REASON_STOP,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.DEADLINE: pb.FINISH_REASON_DEADLINE,
}
_MOST_BYTES_OF_A_CHARACTER = 4


def event_to_proto(
    event: Event, most_bytes: int, request: Request, served_by: ServedBy
) -> Iterator[pb.GenerateStreamResponse]:
    """The messages of an event, none with more than ``most_bytes`` of text."""
    match event:
        case Finished():
            yield finished_to_proto(event, request, served_by)
        case Draft(text, block_index):
            yield pb.GenerateStreamResponse(draft=pb.Draft(text=text, block_index=block_index))
        case Delta():
            yield from delta_to_proto(event, most_bytes)


def delta_to_proto(delta: Delta, most_bytes: int) -> Iterator[pb.GenerateStreamResponse]:
    """The delta as messages of at most ``most_bytes`` of text, cut between characters."""
    for text in _pieces(delta.text, most_bytes // _MOST_BYTES_OF_A_CHARACTER):
        yield pb.GenerateStreamResponse(
            delta=pb.Delta(
                text=text, block_index=delta.block_index, denoise_steps=delta.denoise_steps
            )
        )


def _pieces(text: str, characters: int) -> Iterator[str]:
    for start in range(0, len(text), characters):
        yield text[start : start + characters]


def finished_to_proto(
    finished: Finished, request: Request, served_by: ServedBy
) -> pb.GenerateStreamResponse:
    """The last message of a stream; holds the reasoning only where it was asked for."""
    return pb.GenerateStreamResponse(
        finished=pb.Finished(
            request_id=request.request_id,
            thinking=finished.thinking if request.thinking.include else "",
            finish_reason=_FINISH_REASONS[finished.finish_reason],
            usage=_usage(finished.usage),
            timing=_timing(finished.timing),
            served_by=_served_by(served_by),
            seed=finished.seed,
            best_effort=finished.best_effort,
            repairs=finished.repairs,
        )
    )


def response_to_proto(
    text: str, finished: Finished, request: Request, served_by: ServedBy
) -> pb.GenerateResponse:
    """A unary answer: the text of all deltas and everything the end of a stream says."""
    end = finished_to_proto(finished, request, served_by).finished
    return pb.GenerateResponse(
        request_id=end.request_id,
        text=text,
        thinking=end.thinking,
        finish_reason=end.finish_reason,
        usage=end.usage,
        timing=end.timing,
        served_by=end.served_by,
        seed=end.seed,
        best_effort=end.best_effort,
        repairs=end.repairs,
    )


def _usage(usage: Usage) -> pb.Usage:
    return pb.Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        thinking_tokens=usage.thinking_tokens,
        denoise_steps=usage.denoise_steps,
        forward_passes=usage.forward_passes,
        tokens_per_forward=usage.tokens_per_forward,
        input_truncated=usage.input_truncated,
        blocks=usage.blocks,
        forced_commits=usage.forced_commits,
        discarded_tokens=usage.discarded_tokens,
        cached_tokens=usage.cached_tokens,
    )


def _timing(timing: Timing) -> pb.Timing:
    return pb.Timing(
        queue=_duration(timing.queue),
        prefill=_duration(timing.prefill),
        decode=_duration(timing.decode),
        first_output=_duration(timing.first_output),
        total=_duration(timing.total),
    )


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(max(seconds, 0.0) * 1e9))
    return duration


def _served_by(node: ServedBy) -> pb.ServedBy:
    return pb.ServedBy(
        node_id=node.node_id,
        group=node.group,
        model=node.model,
        version=node.version,
        paradigm=PARADIGMS[node.paradigm],
    )
