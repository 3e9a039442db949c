"""Where a call comes from."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import unquote


def address_of(peer: str) -> IPv4Address | IPv6Address | None:
    """The address in gRPC's name of a peer, such as ``ipv4:10.1.2.3:4567``; None for others.

    An IPv4 caller of an IPv6 socket has its IPv4 address.
    """
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return None
    host = unquote(rest).rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
