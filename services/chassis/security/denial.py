"""Why a call is not let in, as its caller, the log and the metrics are told."""

from __future__ import annotations

from enum import StrEnum

from services.chassis.errors import (
    PermissionDenied,
    QuotaExceeded,
    ServiceError,
    Unauthenticated,
)


class Cause(StrEnum):
    """What a call was refused for; a closed set."""

    NO_CREDENTIALS = "no_credentials"
    UNKNOWN_KEY = "unknown_key"
    EXPIRED_KEY = "expired_key"
    UNKNOWN_CERTIFICATE = "unknown_certificate"
    DISABLED = "disabled"
    NO_OPERATOR = "no_operator"
    NETWORK = "network"
    TASK = "task"
    MODEL = "model"
    GROUP = "group"
    REQUESTS_PER_SECOND = "requests_per_second"
    CONCURRENCY = "concurrency"
    TOKENS_PER_MINUTE = "tokens_per_minute"


_KEY_IS_BAD = "the API key is not valid"
"""The same for a key that never was and one that has ended: neither is told which."""

_WORDS: dict[Cause, tuple[type[ServiceError], str]] = {
    Cause.NO_CREDENTIALS: (
        Unauthenticated,
        "this port is for known callers: send authorization: Bearer KEY",
    ),
    Cause.UNKNOWN_KEY: (Unauthenticated, _KEY_IS_BAD),
    Cause.EXPIRED_KEY: (Unauthenticated, _KEY_IS_BAD),
    Cause.UNKNOWN_CERTIFICATE: (Unauthenticated, "no caller goes by the client certificate"),
    Cause.DISABLED: (PermissionDenied, "this caller is disabled"),
    Cause.NO_OPERATOR: (PermissionDenied, "this is for operators"),
    Cause.NETWORK: (PermissionDenied, "this caller may not call from this address"),
    Cause.TASK: (PermissionDenied, "this caller may not ask for this task"),
    Cause.MODEL: (PermissionDenied, "this caller may not use this model"),
    Cause.GROUP: (PermissionDenied, "this caller may not use the nodes this call is routed to"),
    Cause.REQUESTS_PER_SECOND: (QuotaExceeded, "this caller's requests per second are used up"),
    Cause.CONCURRENCY: (QuotaExceeded, "this caller has as many calls running as it may"),
    Cause.TOKENS_PER_MINUTE: (QuotaExceeded, "this caller's tokens per minute are used up"),
}

_PUBLIC_CAUSES = frozenset(Cause) - {Cause.UNKNOWN_KEY, Cause.EXPIRED_KEY}


class Denied(Exception):
    """A call that is not let in; ``caller`` is empty where nobody knows who it is."""

    def __init__(self, cause: Cause, caller: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.caller = caller
        self.retry_after_s = retry_after_s

    @property
    def error(self) -> ServiceError:
        """What the caller is told."""
        kind, words = _WORDS[self.cause]
        metadata = {"cause": str(self.cause)} if self.cause in _PUBLIC_CAUSES else {}
        return kind(words, retry_after_s=self.retry_after_s, metadata=metadata)
