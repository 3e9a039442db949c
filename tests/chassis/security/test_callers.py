"""Who calls: found by key or certificate, and never by anything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from pydantic import SecretStr

from braid.config.v1 import config_pb2
from services.chassis.errors import RegistryUnavailable
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.security.callers import Callers
from services.chassis.security.denial import Cause, Denied
from tests.callers import Known, changes, known
from tests.clock import Clock

OPERATOR_KEY = "k" * 32


def no_certificate() -> Mapping[str, Iterable[bytes]]:
    return {}


def callers_with(*all_known: Known, clock: Clock | None = None) -> Callers:
    callers = Callers(SecretStr(OPERATOR_KEY), clock or Clock())
    callers.apply(MirrorState(), changes(*all_known))
    return callers


def who(callers: Callers, authorization: str) -> str:
    return callers.identify({"authorization": authorization}, no_certificate).caller_id


def cause(callers: Callers, authorization: str | None) -> Cause:
    metadata = {} if authorization is None else {"authorization": authorization}
    with pytest.raises(Denied) as caught:
        callers.identify(metadata, no_certificate)
    return caught.value.cause


def test_each_key_is_its_callers() -> None:
    """Keys tell callers apart, the first time and after."""
    one, other = known("one"), known("other")
    callers = callers_with(one, other)
    for _ in range(2):
        assert who(callers, f"Bearer {one.api_key}") == "one"
        assert who(callers, f"bearer {other.api_key}") == "other"


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (None, Cause.NO_CREDENTIALS),
        ("", Cause.NO_CREDENTIALS),
        ("Basic abc", Cause.NO_CREDENTIALS),
        ("Bearer ", Cause.UNKNOWN_KEY),
        ("Bearer " + "x" * 5000, Cause.UNKNOWN_KEY),
        ("Bearer {wrong_secret}", Cause.UNKNOWN_KEY),
        ("Bearer {wrong_id}", Cause.UNKNOWN_KEY),
        ("Bearer {key} ", Cause.UNKNOWN_KEY),
        ("Bearer " + OPERATOR_KEY[:-1] + "\u00e9", Cause.UNKNOWN_KEY),
    ],
)
def test_anything_else_is_nobodys(authorization: str | None, expected: Cause) -> None:
    """What is not exactly a key is refused, a wrong secret under a right id too."""
    caller = known()
    given = authorization and authorization.format(
        key=caller.api_key,
        wrong_secret=caller.api_key[:-43] + known().api_key[-43:],
        wrong_id=known().api_key[:-43] + caller.api_key[-43:],
    )
    callers = callers_with(caller)
    who(callers, f"Bearer {caller.api_key}")
    assert cause(callers, given) == expected


def test_old_key_ends_on_time() -> None:
    """A key with an end is good until then, also where it was found right before."""
    caller, clock = known(), Clock(1000)
    caller.record.keys[0].expires_at.FromSeconds(1010)
    callers = callers_with(caller, clock=clock)
    assert who(callers, f"Bearer {caller.api_key}") == "editor"
    clock.now = 1010.5
    assert cause(callers, f"Bearer {caller.api_key}") == Cause.EXPIRED_KEY


@pytest.mark.parametrize("how", ["disabled", "deleted", "other key"])
def test_change_acts_on_the_next_call(how: str) -> None:
    """A caller that was served is refused once its record says so."""
    caller = known()
    callers = callers_with(caller)
    who(callers, f"Bearer {caller.api_key}")
    if how == "deleted":
        callers.apply(MirrorState(), Changes(deleted=(caller.key,)))
    elif how == "disabled":
        caller.record.disabled = True
        callers.apply(MirrorState(), changes(caller))
    else:
        callers.apply(MirrorState(), changes(known()))
    expected = Cause.DISABLED if how == "disabled" else Cause.UNKNOWN_KEY
    assert cause(callers, f"Bearer {caller.api_key}") == expected


@pytest.mark.parametrize("field", ["x509_common_name", "x509_subject_alternative_name"])
def test_certificate_names_a_caller(field: str) -> None:
    """A name in the client's certificate stands for the caller whose record has it."""
    callers = callers_with(known("robot", config_pb2.Caller(certificate_names=["robot.example"])))
    shown = {field: [b"other", b"robot.example"]}
    assert callers.identify({}, lambda: shown).caller_id == "robot"
    with pytest.raises(Denied, match=Cause.UNKNOWN_CERTIFICATE):
        callers.identify({}, lambda: {field: [b"stranger"]})


def test_bad_key_is_not_made_good_by_a_certificate() -> None:
    """Who sends a key is judged by it."""
    callers = callers_with(known("robot", config_pb2.Caller(certificate_names=["robot"])))
    with pytest.raises(Denied, match=Cause.UNKNOWN_KEY):
        callers.identify({"authorization": "Bearer x"}, lambda: {"x509_common_name": [b"robot"]})


def test_operator_key_needs_no_registry() -> None:
    """The key of the settings is an operator's before etcd has answered; others must wait."""
    callers = Callers(SecretStr(OPERATOR_KEY))
    assert callers.identify({"authorization": f"Bearer {OPERATOR_KEY}"}, no_certificate).operator
    with pytest.raises(RegistryUnavailable):
        callers.identify({"authorization": f"Bearer {known().api_key}"}, no_certificate)


def test_bad_record_leaves_the_last_good_one() -> None:
    """A slip of a hand locks nobody out."""
    caller = known()
    callers = callers_with(caller)
    caller.record.allowed.networks.append("10.0.0.1/8")
    callers.apply(MirrorState(), changes(caller))
    assert who(callers, f"Bearer {caller.api_key}") == "editor"
    assert "allowed.networks[0]" in callers.rejected[0].reason
