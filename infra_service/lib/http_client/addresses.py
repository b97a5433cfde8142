"""Check addresses: safe for secrets, public, or inside a network."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra_service.lib.http_client.special_purpose import is_globally_reachable

if TYPE_CHECKING:
    from collections.abc import Collection

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: IPv4 addresses within IPv6, for IPv6-only networks (RFC 6052).
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
#: The address of ``localhost``.
LOOPBACK: Final = ipaddress.IPv4Address("127.0.0.1")


def is_protected(url: str) -> bool:
    """Return whether the URL uses TLS or a loopback address, and contains no user name."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or port == 0 or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def is_loopback(host: str) -> bool:
    """Return whether a host is ``localhost`` or a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_localhost(host: str) -> bool:
    """Return whether a name always resolves to this machine (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def is_inside(address: Address, networks: Collection[Network]) -> bool:
    """Return whether the address, or the IPv4 address that it represents, is in a network."""
    inner = _inner(address)
    return any(inner in network for network in networks)


def is_public(address: Address) -> bool:
    """Return whether the address reaches the same peer from every network.

    6to4 and Teredo addresses are not public, because a relay that the network chooses unpacks an
    IPv4 address from them.
    """
    return is_globally_reachable(_inner(address))


def parse_literal(host: str) -> Address | None:
    """Return the address in the host of a URL, in any form that a resolver accepts, or None.

    For example, ``127.1``, ``0x7f.1`` and ``2130706433`` are 127.0.0.1.
    """
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address represents, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address
