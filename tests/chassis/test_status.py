"""From typed errors to statuses."""

from __future__ import annotations

import string
from urllib.parse import quote

import grpc
from google.rpc import error_details_pb2
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.errors import InvalidRequest, QueueFull
from services.chassis.status import cut, to_status

PLAIN = " " + string.punctuation.replace("%", "")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(min_value=0, max_value=64))
def test_cut_keeps_whole_characters(text: str, limit: int) -> None:
    """A cut text fits as a trailer spells it, is a prefix, and is whole where it fits."""
    kept = cut(text, limit)
    assert len(quote(kept, safe=PLAIN)) <= limit
    assert text.startswith(kept)
    assert kept == text or len(quote(text[: len(kept) + 1], safe=PLAIN)) > limit


def test_cut_takes_lone_surrogates() -> None:
    """Text that is no valid Unicode still becomes a message."""
    assert cut("a\ud800b") == "a?b"


def test_status_names_reason_and_fields() -> None:
    """Bad input becomes ErrorInfo and BadRequest with the field's path."""
    status = to_status(InvalidRequest.field("sampling.top_p", "must be over 0"))
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(bad)
    assert (info.domain, info.reason) == ("braid", "INVALID_REQUEST")
    assert [violation.field for violation in bad.field_violations] == ["sampling.top_p"]
    assert status.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]


def test_status_says_when_to_retry() -> None:
    """A full queue carries RetryInfo."""
    status = to_status(QueueFull("full", retry_after_s=1.5))
    retry = error_details_pb2.RetryInfo()
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 1500
