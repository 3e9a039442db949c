"""One line about an answer: who made it, how much, how long."""

from __future__ import annotations

from braid.inference.v1 import inference_pb2 as inference
from services.cli.names import finish_name, paradigm_name

Answer = inference.GenerateResponse | inference.Finished


def answer_line(answer: Answer) -> str:
    """E.g. ``diffusion-1 (demo-diffusion v1, diffusion): 24 tokens, 5 steps, 0.031 s, stop``."""
    who = answer.served_by
    facts = [
        f"{answer.usage.completion_tokens} tokens",
        work_done(answer),
        f"{answer.timing.total.ToTimedelta().total_seconds():.3f} s",
        finish_name(answer.finish_reason),
    ]
    if answer.best_effort:
        facts.append("best effort")
    origin = f"{who.model} {who.version}, {paradigm_name(who.paradigm)}"
    return f"{who.node_id} ({origin}): {', '.join(facts)}"


def work_done(answer: Answer) -> str:
    """Denoising steps of a diffusion answer, forward passes of an autoregressive one."""
    if answer.served_by.paradigm == inference.PARADIGM_DIFFUSION:
        return f"{answer.usage.denoise_steps} steps"
    return f"{answer.usage.forward_passes} forwards"
