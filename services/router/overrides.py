"""Decoding parameters that a rule lowers, as bytes behind a request that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from braid.config.v1 import config_pb2
from braid.inference.v1 import inference_pb2
from services.router.features import Features


@dataclass(frozen=True, slots=True)
class Overrides:
    """Upper limits; None leaves a parameter alone."""

    max_steps: int | None = None
    max_new_tokens: int | None = None

    def within(self, group: config_pb2.Group | None) -> Overrides:
        """The same, nothing over what the group's record allows."""
        if group is None:
            return self
        return Overrides(
            _least(self.max_steps, group.max_steps),
            _least(self.max_new_tokens, group.max_new_tokens),
        )

    def tightened(self, other: Overrides | None) -> Overrides:
        """The lower of both limits, parameter by parameter."""
        if other is None:
            return self
        return Overrides(
            _least(self.max_steps or other.max_steps, other.max_steps or 0),
            _least(self.max_new_tokens or other.max_new_tokens, other.max_new_tokens or 0),
        )

    def changing(self, features: Features, *, diffusion: bool) -> Overrides:
        """What of it changes this request: a caller's own lower value stays."""
        return Overrides(
            _lower(self.max_steps, features.max_steps) if diffusion else None,
            _lower(self.max_new_tokens, features.max_new_tokens),
        )

    def applied_to(self, features: Features) -> Features:
        """Features of the request as it will be sent."""
        return replace(
            features,
            max_steps=self.max_steps or features.max_steps,
            max_new_tokens=self.max_new_tokens or features.max_new_tokens,
        )

    def as_bytes(self) -> bytes:
        """Fields to append to a serialized GenerateRequest.

        Of a field that comes twice a parser of protobuf takes the last, and it
        merges messages that come twice.
        """
        message = inference_pb2.GenerateRequest()
        if self.max_steps is not None:
            message.diffusion.max_steps = self.max_steps
        if self.max_new_tokens is not None:
            message.sampling.max_new_tokens = self.max_new_tokens
        return message.SerializeToString()


UNCHANGED = Overrides()


def _least(value: int | None, cap: int) -> int | None:
    """``cap`` 0: no cap."""
    return min(value, cap) if value is not None and cap else value


def _lower(limit: int | None, asked: int | None) -> int | None:
    return limit if asked is None or (limit is not None and limit < asked) else None
