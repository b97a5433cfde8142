"""IANA's registries of special-purpose addresses, as of November 2025.

Sources: https://www.iana.org/assignments/iana-ipv4-special-registry/ and
https://www.iana.org/assignments/iana-ipv6-special-registry/. ``ipaddress.is_global`` covers only
some of these addresses, and its coverage differs between releases of Python.
"""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple


class Block(NamedTuple):
    """A row of a registry. ``is_reachable`` is None for N/A."""

    network: str
    name: str
    rfc: str
    is_reachable: bool | None


IPV4: Final = (
    Block("0.0.0.0/8", "This network", "RFC 791", is_reachable=False),
    Block("0.0.0.0/32", "This host on this network", "RFC 1122", is_reachable=False),
    Block("10.0.0.0/8", "Private-Use", "RFC 1918", is_reachable=False),
    Block("100.64.0.0/10", "Shared Address Space", "RFC 6598", is_reachable=False),
    Block("127.0.0.0/8", "Loopback", "RFC 1122", is_reachable=False),
    Block("169.254.0.0/16", "Link Local", "RFC 3927", is_reachable=False),
    Block("172.16.0.0/12", "Private-Use", "RFC 1918", is_reachable=False),
    Block("192.0.0.0/24", "IETF Protocol Assignments", "RFC 6890", is_reachable=False),
    Block("192.0.0.0/29", "IPv4 Service Continuity Prefix", "RFC 7335", is_reachable=False),
    Block("192.0.0.8/32", "IPv4 dummy address", "RFC 7600", is_reachable=False),
    Block("192.0.0.9/32", "Port Control Protocol Anycast", "RFC 7723", is_reachable=True),
    Block("192.0.0.10/32", "TURN Anycast", "RFC 8155", is_reachable=True),
    Block("192.0.0.170/32", "NAT64/DNS64 Discovery", "RFC 8880", is_reachable=False),
    Block("192.0.0.171/32", "NAT64/DNS64 Discovery", "RFC 8880", is_reachable=False),
    Block("192.0.2.0/24", "Documentation (TEST-NET-1)", "RFC 5737", is_reachable=False),
    Block("192.31.196.0/24", "AS112-v4", "RFC 7535", is_reachable=True),
    Block("192.52.193.0/24", "AMT", "RFC 7450", is_reachable=True),
    Block("192.88.99.0/24", "Deprecated (6to4 Relay Anycast)", "RFC 7526", is_reachable=None),
    Block("192.88.99.2/32", "6a44-relay anycast address", "RFC 6751", is_reachable=False),
    Block("192.168.0.0/16", "Private-Use", "RFC 1918", is_reachable=False),
    Block("192.175.48.0/24", "Direct Delegation AS112 Service", "RFC 7534", is_reachable=True),
    Block("198.18.0.0/15", "Benchmarking", "RFC 2544", is_reachable=False),
    Block("198.51.100.0/24", "Documentation (TEST-NET-2)", "RFC 5737", is_reachable=False),
    Block("203.0.113.0/24", "Documentation (TEST-NET-3)", "RFC 5737", is_reachable=False),
    Block("240.0.0.0/4", "Reserved", "RFC 1112", is_reachable=False),
    Block("255.255.255.255/32", "Limited Broadcast", "RFC 8190", is_reachable=False),
)
IPV6: Final = (
    Block("::1/128", "Loopback Address", "RFC 4291", is_reachable=False),
    Block("::/128", "Unspecified Address", "RFC 4291", is_reachable=False),
    Block("::ffff:0:0/96", "IPv4-mapped Address", "RFC 4291", is_reachable=False),
    Block("64:ff9b::/96", "IPv4-IPv6 Translat.", "RFC 6052", is_reachable=True),
    Block("64:ff9b:1::/48", "IPv4-IPv6 Translat.", "RFC 8215", is_reachable=False),
    Block("100::/64", "Discard-Only Address Block", "RFC 6666", is_reachable=False),
    Block("100:0:0:1::/64", "Dummy IPv6 Prefix", "RFC 9780", is_reachable=False),
    Block("2001::/23", "IETF Protocol Assignments", "RFC 2928", is_reachable=False),
    Block("2001::/32", "TEREDO", "RFC 4380", is_reachable=None),
    Block("2001:1::1/128", "Port Control Protocol Anycast", "RFC 7723", is_reachable=True),
    Block("2001:1::2/128", "TURN Anycast", "RFC 8155", is_reachable=True),
    Block("2001:1::3/128", "DNS-SD SRP Anycast Address", "RFC 9665", is_reachable=True),
    Block("2001:2::/48", "Benchmarking", "RFC 5180", is_reachable=False),
    Block("2001:3::/32", "AMT", "RFC 7450", is_reachable=True),
    Block("2001:4:112::/48", "AS112-v6", "RFC 7535", is_reachable=True),
    Block("2001:10::/28", "Deprecated (previously ORCHID)", "RFC 4843", is_reachable=None),
    Block("2001:20::/28", "ORCHIDv2", "RFC 7343", is_reachable=True),
    Block("2001:30::/28", "Drone Remote ID Entity Tags", "RFC 9374", is_reachable=True),
    Block("2001:db8::/32", "Documentation", "RFC 3849", is_reachable=False),
    Block("2002::/16", "6to4", "RFC 3056", is_reachable=None),
    Block("2620:4f:8000::/48", "Direct Delegation AS112 Service", "RFC 7534", is_reachable=True),
    Block("3fff::/20", "Documentation", "RFC 9637", is_reachable=False),
    Block("5f00::/16", "Segment Routing (SRv6) SIDs", "RFC 9602", is_reachable=False),
    Block("fc00::/7", "Unique-Local", "RFC 4193", is_reachable=False),
    Block("fe80::/10", "Link-Local Unicast", "RFC 4291", is_reachable=False),
)
#: The unicast addresses. Other addresses are reserved or multicast, unless a row above lists them.
_UNICAST: Final = (
    *(ipaddress.ip_network(text) for text in ("0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3")),
    ipaddress.ip_network("2000::/3"),
)
#: The longest prefixes come first, because the most specific row decides.
_BLOCKS: Final = sorted(
    ((ipaddress.ip_network(block.network), block.is_reachable) for block in (*IPV4, *IPV6)),
    key=lambda row: -row[0].prefixlen,
)


def is_globally_reachable(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address is globally reachable unicast. N/A counts as not reachable."""
    for network, is_reachable in _BLOCKS:
        if address in network:
            return bool(is_reachable)
    return any(address in network for network in _UNICAST)
