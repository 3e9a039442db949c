"""Quotas: what is let in, what is not, and when to come again."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.entries import Entry
from services.chassis.keys import router_key
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.security.callers import Caller
from services.chassis.security.denial import Cause, Denied
from services.router.quota import Account, Bucket, Quotas
from tests.clock import Clock

amounts = st.floats(0.1, 50)
pauses = st.floats(0, 5)


@given(
    rate=st.floats(0.1, 100),
    capacity=st.floats(1, 100),
    asked=st.lists(st.tuples(amounts, pauses), min_size=1, max_size=50),
)
def test_never_more_than_flows(
    rate: float, capacity: float, asked: list[tuple[float, float]]
) -> None:
    """What was taken came in by the rate, one capacity, and what one large call overdrew."""
    bucket, now, taken = Bucket(rate, capacity, 0.0), 0.0, 0.0
    for amount, pause in asked:
        now += pause
        if bucket.take(amount, now) == 0.0:
            taken += amount
    overdrawn = max(0.0, max(amount for amount, _ in asked) - capacity)
    assert taken <= (capacity + rate * now + overdrawn) * 1.000001


@given(rate=st.floats(0.1, 100), capacity=st.floats(1, 100), amount=amounts)
def test_wait_is_long_enough(rate: float, capacity: float, amount: float) -> None:
    """Who comes again after the time named is let in."""
    bucket, wait_s = Bucket(rate, capacity, 0.0), 0.0
    while wait_s == 0.0:
        wait_s = bucket.take(amount, 0.0)
    assert bucket.take(amount, wait_s * 1.000001 + 1e-9) == 0.0


@given(rate=st.floats(0.1, 100), share=st.integers(1, 9))
def test_resizing_gives_nothing_away(rate: float, share: int) -> None:
    """An empty bucket stays empty when another router comes."""
    bucket = Bucket(rate, 10.0, 0.0)
    bucket.take(10.0, 0.0)
    bucket.resize(rate / share, 10.0 / share, 0.0)
    assert bucket.take(0.5, 0.0) > 0


def test_no_limit() -> None:
    """A caller without a quota is never refused."""
    account = Account(Caller("free"), 3, 0.0)
    for _ in range(1000):
        account.begin(0.0)
        account.take_tokens(1e9, 0.0)


@pytest.mark.parametrize(
    ("caller", "cause"),
    [
        (Caller("c", concurrency=4), Cause.CONCURRENCY),
        (Caller("c", requests_per_second=4), Cause.REQUESTS_PER_SECOND),
    ],
)
def test_quota_is_shared_among_routers(caller: Caller, cause: Cause) -> None:
    """Two routers admit half each; the half that another leaves behind is taken over."""
    clock = Clock()
    quotas = Quotas(clock)
    quotas.apply(*routers("r1", "r2"))
    assert admitted(quotas, caller) == (2, cause)
    quotas.apply(*routers("r1", gone="r2"))
    assert admitted(quotas, caller) == (2, cause)


def admitted(quotas: Quotas, caller: Caller) -> tuple[int, Cause]:
    """Calls begun before one is refused, and why that is."""
    for count in range(100):
        try:
            quotas.account(caller).begin(quotas.clock())
        except Denied as denied:
            return count, denied.cause
    raise AssertionError("no end")


def routers(*alive: str, gone: str | None = None) -> tuple[MirrorState, Changes]:
    """News of the routers."""
    entries = tuple(Entry(router_key(name), b"{}", 1) for name in alive)
    state = MirrorState(entries={entry.key: entry for entry in entries})
    return state, Changes(put=entries, deleted=(router_key(gone),) if gone else ())


def test_small_quota_is_one_call_at_each_router() -> None:
    """A caller whose router gets less than one of its calls is not locked out."""
    quotas = Quotas(Clock())
    quotas.apply(*routers("r1", "r2", "r3"))
    assert admitted(quotas, Caller("c", concurrency=2))[0] == 1
    assert admitted(quotas, Caller("d", requests_per_second=1))[0] == 1


def test_call_that_ended_makes_room() -> None:
    """Concurrency counts what runs."""
    account = Account(Caller("c", concurrency=1), 1, 0.0)
    for _ in range(3):
        account.begin(0.0)
        account.end()


def test_raised_quota_acts_at_once() -> None:
    """A changed record needs no new account."""
    quotas = Quotas(Clock())
    assert admitted(quotas, Caller("c", concurrency=1))[0] == 1
    assert admitted(quotas, Caller("c", concurrency=3))[0] == 2
    assert admitted(quotas, Caller("c", concurrency=inf, requests_per_second=5))[0] == 5


def test_tokens_are_corrected_by_usage() -> None:
    """What an answer did not use can be used by the next."""
    account = Account(Caller("c", tokens_per_minute=100), 1, 0.0)
    account.take_tokens(90, 0.0)
    with pytest.raises(Denied, match=Cause.TOKENS_PER_MINUTE):
        account.take_tokens(90, 0.0)
    account.give_back_tokens(80)
    account.take_tokens(90, 0.0)
