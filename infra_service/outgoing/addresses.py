"""Which addresses a secret may be sent to, and which are public or inside of a network."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: IPv4 addresses within IPv6, for networks that have no other (RFC 6052).
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def is_protected(url: str) -> bool:
    """Whether nobody can read on its way what is sent there: TLS or this machine, and no user."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or port == 0 or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_inside(address: Address, networks: Collection[Network]) -> bool:
    """Whether the address, or the IPv4 address that it stands for, is in one of the networks."""
    inner = _inner(address)
    return any(inner in network for network in networks)


def is_public(address: Address) -> bool:
    """Whether the address can be reached from everywhere, so that asking it opens nothing."""
    inner = _inner(address)
    return inner.is_global and not inner.is_multicast


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
