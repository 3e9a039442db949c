"""Hand edits over time: what is in force, and what an operator is told."""

from __future__ import annotations

from structlog.testing import capture_logs

from services.chassis.documents import parse_shares
from services.chassis.entries import Entry
from services.chassis.last_good import LastGood
from services.chassis.mirror_state import Changes

KEY = "/braid/traffic/llada"
GOOD = Entry(KEY, b'{"v1": 1}', 5)
BAD = Entry(KEY, b'{"v1": 1,}', 6)


def traffic() -> LastGood[dict[str, int]]:
    return LastGood("/braid/traffic/", parse_shares)


def test_bad_value_leaves_the_former_in_force() -> None:
    """A value that does not parse changes nothing but the list of rejected ones."""
    values = traffic()
    values.update(Changes(put=(GOOD,)))
    assert values.update(Changes(put=(BAD,)))
    assert values.values == {KEY: {"v1": 1}}
    assert [(bad.key, bad.revision) for bad in values.rejected] == [(KEY, 6)]


def test_correction_applies() -> None:
    """The corrected value is in force at once and clears the fault."""
    values = traffic()
    values.update(Changes(put=(BAD,)))
    values.update(Changes(put=(Entry(KEY, b'{"v2": 1}', 7),)))
    assert values.values == {KEY: {"v2": 1}}
    assert values.rejected == ()


def test_one_warning_for_one_bad_revision() -> None:
    """A bad value seen again, after a relist, does not warn again; another one does."""
    values = traffic()
    with capture_logs() as lines:
        values.update(Changes(put=(BAD,)))
        values.update(Changes(put=(BAD,), relisted=True))
        values.update(Changes(put=(Entry(KEY, b"null", 8),)))
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [(line["event"], line["key"], line["revision"]) for line in warnings] == [
        ("value_rejected", KEY, 6),
        ("value_rejected", KEY, 8),
    ]
    assert all(line["reason"] for line in warnings)


def test_deleting_the_key_forgets_it() -> None:
    """A deleted key has neither a value nor a fault."""
    values = traffic()
    values.update(Changes(put=(GOOD,)))
    values.update(Changes(put=(BAD,)))
    assert values.update(Changes(deleted=(KEY,)))
    assert (values.values, values.rejected) == ({}, ())


def test_other_prefixes_are_not_its_business() -> None:
    """Keys outside the prefix, longer names included, are passed over."""
    policy = LastGood("/braid/policy", parse_shares)
    assert not policy.update(Changes(put=(Entry("/braid/policy2", b"{}", 1), GOOD)))
    assert policy.update(Changes(put=(Entry("/braid/policy", b"{}", 1),)))
