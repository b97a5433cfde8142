"""Networks from which a key or token may be used (CIDR, RFC 4632 and RFC 4291)."""

from __future__ import annotations

import functools
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra_service.lib.api.client_address import parse_address

if TYPE_CHECKING:
    from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: The maximum number of networks of a credential, because each request compares with all of them.
MAX_NETWORKS: Final = 50
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")


def parse_network(text: str) -> Network:
    """Parse a network. IPv4-mapped networks become IPv4 networks, like client addresses.

    Raises:
        ValueError: the text is not a network, or has nonzero bits after its prefix.
    """
    if "%" in text:
        raise ValueError(f"{text!r} has a zone")
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        address = network.network_address.ipv4_mapped
        return ipaddress.IPv4Network((address, network.prefixlen - _MAPPED.prefixlen))
    return network


@dataclass(frozen=True, slots=True)
class Networks:
    """Networks without overlaps. None allows every address, including unknown addresses."""

    ranges: frozenset[Network] | None = None

    @classmethod
    def of(cls, networks: Iterable[Network]) -> Networks:
        """Return the networks after merging adjacent and overlapping networks."""
        by_version: dict[int, list[Any]] = {4: [], 6: []}
        for network in networks:
            by_version[network.version].append(network)
        merged = (ipaddress.collapse_addresses(each) for each in by_version.values())
        return cls(frozenset(network for each in merged for network in each))

    @classmethod
    def of_column(cls, texts: Iterable[str] | None) -> Networks:
        """Return the networks in a row's column."""
        return ANYWHERE if texts is None else _of_texts(tuple(texts))

    def column(self) -> list[str] | None:
        """Return the value for a row's column."""
        if self.ranges is None:
            return None
        return [str(n) for n in sorted(self.ranges, key=lambda n: (n.version, n))]

    def allows(self, address: str) -> bool:
        """Return whether a client at this address may use the credential."""
        if self.ranges is None:
            return True
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self.ranges)

    def is_within(self, other: Networks) -> bool:
        """Return whether the other networks include all these addresses."""
        if other.ranges is None or self.ranges is None:
            return other.ranges is None
        return all(any(_is_within(n, each) for each in other.ranges) for n in self.ranges)

    @property
    def is_over_limit(self) -> bool:
        """Return whether the number of networks exceeds the limit of a credential."""
        return self.ranges is not None and len(self.ranges) > MAX_NETWORKS

    def intersection(self, other: Networks) -> Networks:
        """Return the common addresses. Any two networks are disjoint, or one contains the other."""
        if self.ranges is None or other.ranges is None:
            return self if other.ranges is None else other
        return Networks(
            frozenset(
                inner
                for own, others in ((self.ranges, other.ranges), (other.ranges, self.ranges))
                for inner in own
                if any(_is_within(inner, outer) for outer in others)
            )
        )


ANYWHERE: Final = Networks()


@functools.lru_cache(maxsize=1024)
def _of_texts(texts: tuple[str, ...]) -> Networks:
    return Networks.of(map(parse_network, texts))


def _is_within(network: Any, other: Any) -> bool:
    return network.version == other.version and bool(network.subnet_of(other))
