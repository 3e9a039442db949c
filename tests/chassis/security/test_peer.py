"""Where a call comes from."""

from __future__ import annotations

import pytest

from services.chassis.security.peer import address_of


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:10.1.2.3:4567", "10.1.2.3"),
        ("ipv6:%5B2001:db8::1%5D:4567", "2001:db8::1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:4567", "fe80::1"),
        ("ipv6:%5B::ffff:10.1.2.3%5D:4567", "10.1.2.3"),
        ("unix:/run/socket", None),
        ("ipv4:nonsense", None),
        ("", None),
    ],
)
def test_address(peer: str, address: str | None) -> None:
    """gRPC's names of peers are read; what is no address is none."""
    found = address_of(peer)
    assert (str(found) if found else None) == address
