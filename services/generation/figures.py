"""Figures of an answer that took more than one sequence."""

from __future__ import annotations

from dataclasses import replace

from services.generation.types import Finished, FinishReason, Timing, Usage

_WEIGHT = {FinishReason.STOP: 0, FinishReason.LENGTH: 1, FinishReason.DEADLINE: 2}


def joined(parts: list[Finished]) -> Finished:
    """The end of an answer made of ``parts``: every token counts."""
    reason = max((part.finish_reason for part in parts), key=_WEIGHT.__getitem__)
    usage = _work([part.usage for part in parts], sum(p.usage.completion_tokens for p in parts))
    usage = replace(usage, prompt_tokens=sum(part.usage.prompt_tokens for part in parts))
    return replace(
        parts[0],
        finish_reason=reason,
        usage=usage,
        timing=_time([part.timing for part in parts]),
        best_effort=any(part.best_effort for part in parts),
    )


def repaired(tries: list[Finished]) -> Finished:
    """The end of an answer whose last try counts: its tokens, the work of all."""
    last = tries[-1]
    usage = _work([one.usage for one in tries], last.usage.completion_tokens)
    usage = replace(
        usage,
        prompt_tokens=last.usage.prompt_tokens,
        thinking_tokens=last.usage.thinking_tokens,
    )
    timing = _time([one.timing for one in tries])
    return replace(
        last,
        usage=usage,
        timing=replace(timing, first_output=timing.total),
        seed=tries[0].seed,
        repairs=len(tries) - 1,
    )


def _work(usages: list[Usage], completion_tokens: int) -> Usage:
    """Sums, with tokens_per_forward over the forwards that generated."""
    generating = sum(
        usage.completion_tokens / usage.tokens_per_forward
        for usage in usages
        if usage.tokens_per_forward > 0
    )
    return Usage(
        completion_tokens=completion_tokens,
        thinking_tokens=sum(usage.thinking_tokens for usage in usages),
        denoise_steps=sum(usage.denoise_steps for usage in usages),
        forward_passes=sum(usage.forward_passes for usage in usages),
        tokens_per_forward=completion_tokens / generating if generating else 0.0,
        input_truncated=any(usage.input_truncated for usage in usages),
        blocks=sum(usage.blocks for usage in usages),
        forced_commits=sum(usage.forced_commits for usage in usages),
        discarded_tokens=sum(usage.discarded_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
    )


def _time(timings: list[Timing]) -> Timing:
    """From the first queue to the last token; what lies between counts as decoding."""
    first, last = timings[0], timings[-1]
    prefill = sum(timing.prefill for timing in timings)
    return Timing(
        queue=first.queue,
        prefill=prefill,
        decode=max(last.total - first.queue - prefill, 0.0),
        first_output=first.first_output,
        total=last.total,
    )
