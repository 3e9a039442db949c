"""The rules in force while /braid/policy holds none."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2
from braid.routing.v1 import routing_pb2

DIFFUSION_GROUP = "diffusion"
AR_GROUP = "ar"
LOW_LATENCY_MS = 1000
"""A caller that can wait no longer gets the paradigm that decodes in parallel."""


def builtin_policy() -> routing_pb2.Policy:
    """Parallel decoding where latency or form counts, one token at a time where reasoning does.

    Actions and reasoning have no fallback: late actions and unreasoned answers
    are worse for their callers than an error.
    """
    to_diffusion = _route(DIFFUSION_GROUP, fallback=AR_GROUP)
    to_ar = _route(AR_GROUP, fallback=DIFFUSION_GROUP)
    return routing_pb2.Policy(
        rules=[
            _rule("code-completion", to_diffusion, inference_pb2.TASK_CODE_COMPLETION),
            _rule("structured-output", to_diffusion, inference_pb2.TASK_STRUCTURED_OUTPUT),
            _rule("text-editing", to_diffusion, inference_pb2.TASK_TEXT_EDITING),
            _rule("action-control", _route(DIFFUSION_GROUP), inference_pb2.TASK_ACTION_CONTROL),
            _rule(
                "reasoning",
                _route(AR_GROUP),
                inference_pb2.TASK_REASONING,
                inference_pb2.TASK_MATH,
            ),
            routing_pb2.Rule(name="low-latency", match=_low_latency(), route=to_diffusion),
        ],
        default=to_ar,
    )


def _rule(name: str, route: routing_pb2.Route, *tasks: inference_pb2.Task) -> routing_pb2.Rule:
    return routing_pb2.Rule(name=name, match=routing_pb2.Match(tasks=tasks), route=route)


def _low_latency() -> routing_pb2.Match:
    budget = Duration()
    budget.FromMilliseconds(LOW_LATENCY_MS)
    return routing_pb2.Match(latency_budget_at_most=budget)


def _route(group: str, fallback: str = "") -> routing_pb2.Route:
    return routing_pb2.Route(
        groups=[routing_pb2.GroupShare(group=group)], fallback=[fallback] if fallback else []
    )
