"""Who calls: the callers in etcd, found by key or by client certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from math import inf

from pydantic import SecretStr

from braid.config.v1 import config_pb2
from services.chassis.errors import RegistryUnavailable
from services.chassis.keys import CALLERS
from services.chassis.last_good import LastGood, Rejected
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.security.api_key import matches, parse_key, same_text
from services.chassis.security.caller_record import parse_caller
from services.chassis.security.denial import Cause, Denied

AUTHORIZATION_KEY = "authorization"
_SCHEME = "bearer "

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """One caller; empty sets and no networks allow everything.

    A changed record makes another one: they are told apart by identity.
    """

    caller_id: str
    operator: bool = False
    disabled: bool = False
    tasks: frozenset[int] = frozenset()
    models: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    requests_per_second: float = inf
    concurrency: float = inf
    tokens_per_minute: float = inf


THE_OPERATOR = Caller("operator", operator=True)
"""Who has the key of the process's own settings."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A key in force and its caller."""

    caller: Caller
    key: config_pb2.ApiKey
    until: float


class Callers:
    """The callers in force. Follows a mirror whose prefix covers theirs."""

    def __init__(
        self,
        operator_key: SecretStr | None = None,
        clock: Callable[[], float] = time.time,
        records: LastGood[config_pb2.Caller] | None = None,
    ) -> None:
        """``records`` are those of somebody who follows the same mirror, if there is one."""
        self.loaded = False
        self._operator_key = operator_key.get_secret_value() if operator_key else ""
        self._clock = clock
        self._records = records or LastGood(CALLERS, parse_caller)
        self._by_key_id: dict[str, _Held] = {}
        self._by_name: dict[str, Caller] = {}
        self._checked: dict[str, _Held] = {}
        """Keys that were found right, so that each is hashed once."""

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Records that were not taken."""
        return self._records.rejected

    def apply(self, _state: MirrorState, changes: Changes) -> None:
        """Takes what changed. Subscribes to a mirror."""
        if self._records.update(changes):
            self._index(self._records.values.values())
        self.loaded = True

    def _index(self, records: Iterable[config_pb2.Caller]) -> None:
        by_key_id, by_name = {}, {}
        for record in records:
            caller = caller_of(record)
            by_name.update(dict.fromkeys(record.certificate_names, caller))
            for key in record.keys:
                until = key.expires_at.ToNanoseconds() / 1e9 if key.HasField("expires_at") else inf
                by_key_id[key.key_id] = _Held(caller, key, until)
        self._by_key_id, self._by_name, self._checked = by_key_id, by_name, {}

    def identify(
        self,
        metadata: Mapping[str, str | bytes],
        connection: Callable[[], Mapping[str, Iterable[bytes]]],
    ) -> Caller:
        """The caller by its key, or without one by what its ``connection`` shows.

        Raises Denied, and RegistryUnavailable while nobody can know.
        """
        authorization = metadata.get(AUTHORIZATION_KEY)
        if authorization is not None:
            caller = self._by_key(str(authorization))
        else:
            caller = self._by_certificate(connection())
        if caller.disabled:
            raise Denied(Cause.DISABLED, caller.caller_id)
        return caller

    def _by_key(self, authorization: str) -> Caller:
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            raise Denied(Cause.NO_CREDENTIALS)
        text = authorization[len(_SCHEME) :]
        held = self._checked.get(text)
        if held is None:
            if self._operator_key and same_text(text, self._operator_key):
                return THE_OPERATOR
            held = self._checked[text] = self._check(text)
        if held.until < self._clock():
            raise Denied(Cause.EXPIRED_KEY, held.caller.caller_id)
        return held.caller

    def _check(self, text: str) -> _Held:
        self._require_loaded()
        key = parse_key(text)
        held = self._by_key_id.get(key.key_id) if key else None
        if key is None or held is None or not matches(key, held.key):
            raise Denied(Cause.UNKNOWN_KEY)
        return held

    def _by_certificate(self, shown: Mapping[str, Iterable[bytes]]) -> Caller:
        names = tuple(names_shown(shown))
        if not names:
            raise Denied(Cause.NO_CREDENTIALS)
        self._require_loaded()
        for name in names:
            if name in self._by_name:
                return self._by_name[name]
        raise Denied(Cause.UNKNOWN_CERTIFICATE)

    def _require_loaded(self) -> None:
        if not self.loaded:
            raise RegistryUnavailable("the registry has not answered yet", retry_after_s=1.0)


def caller_of(record: config_pb2.Caller) -> Caller:
    """The record as it is used."""
    allowed, quota = record.allowed, record.quota
    return Caller(
        record.caller_id,
        operator=record.role == config_pb2.ROLE_OPERATOR,
        disabled=record.disabled,
        tasks=frozenset(allowed.tasks),
        models=frozenset(allowed.models),
        groups=frozenset(allowed.groups),
        networks=tuple(map(ip_network, allowed.networks)),
        requests_per_second=_or_inf(quota, "requests_per_second"),
        concurrency=_or_inf(quota, "concurrency"),
        tokens_per_minute=_or_inf(quota, "tokens_per_minute"),
    )


def _or_inf(quota: config_pb2.Quota, field: str) -> float:
    return float(getattr(quota, field)) if quota.HasField(field) else inf


def names_shown(connection: Mapping[str, Iterable[bytes]]) -> Iterable[str]:
    """Names in the client's certificate, which its authority vouches for."""
    for field in ("x509_subject_alternative_name", "x509_common_name"):
        for name in connection.get(field, ()):
            yield name.decode("utf-8", "replace")
