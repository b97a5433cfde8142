"""Public addresses by IANA's registries of special-purpose addresses, row by row."""

from __future__ import annotations

import ipaddress

import pytest

from infra_service.lib.http_client.addresses import is_inside, is_public, parse_literal
from infra_service.lib.http_client.special_purpose import IPV4, IPV6, Block


def exceptions(block: Block) -> list[Block]:
    """Return the rows of the same registry that are more specific."""
    network = ipaddress.ip_network(block.network)
    return [
        other
        for other in (*IPV4, *IPV6)
        if other is not block
        and ipaddress.ip_network(other.network).version == network.version
        and network.supernet_of(ipaddress.ip_network(other.network))  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("block", [*IPV4, *IPV6], ids=lambda block: block.network)
def test_each_registry_row_is_applied(block: Block) -> None:
    network = ipaddress.ip_network(block.network)
    inner = [ipaddress.ip_network(other.network) for other in exceptions(block)]
    size = network.num_addresses
    samples = {network[0], network[-1], network[size // 2], network[size // 3]}
    samples = {one for one in samples if not any(one in other for other in inner)}

    assert samples
    assert block.rfc.startswith("RFC ")
    for address in samples:
        if block.network in {"::ffff:0:0/96", "64:ff9b::/96"}:
            # The IPv4 address within it decides.
            assert is_public(address) is is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        else:
            assert is_public(address) is bool(block.is_reachable)


@pytest.mark.parametrize(
    "network",
    [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "240.0.0.0/4",
    ],
)  # fmt: skip
def test_the_neighbours_of_a_block_are_public(network: str) -> None:
    block = ipaddress.IPv4Network(network)
    neighbours = [int(block[0]) - 1, int(block[-1]) + 1]
    found = [ipaddress.IPv4Address(n) for n in neighbours if 0 < n < 2**32]

    assert {str(one) for one in found if not is_public(one)} <= {"239.255.255.255"}


@pytest.mark.parametrize(
    "address",
    [
        # Listed in no registry of special purposes, and outside of global unicast.
        "224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1", "fec0::1", "::7f00:1",
        "::8.8.8.8", "::ffff:0:808:808", "4000::1", "200::1", "e000::1", "fe00::1", "1::1",
        # IPv4 within IPv6, by way of a relay or a translator of the network.
        "64:ff9b:1::808:808", "64:ff9b:1:ffff::1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
        "64:ff9b::a9fe:a9fe", "::ffff:10.0.0.1", "2002:7f00:1::1", "2002:808:808::1",
        "2001:0:808:808::1", "5f00::1", "192.0.0.8", "192.88.99.1", "100:0:0:1::1", "3fff::1",
    ],
)  # fmt: skip
def test_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "93.184.215.14", "223.255.255.254", "192.0.0.9", "192.0.1.1",
     "2606:4700::1111", "2a00::1", "2001:4860::1", "64:ff9b::808:808", "::ffff:8.8.8.8",
     "2001:1::1", "2620:4f:8000::1"],
)  # fmt: skip
def test_ordinary_addresses_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_a_network_of_a_setting_has_the_address_within() -> None:
    networks = [ipaddress.ip_network("10.0.0.0/8")]

    for address in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"):
        assert is_inside(ipaddress.ip_address(address), networks)
    # A relay would unpack it, and not the network of the setting.
    assert not is_inside(ipaddress.ip_address("2002:a01:203::1"), networks)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("0x7f.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"), ("0177.0.0.1", "127.0.0.1"), ("::1", "::1"),
        ("fe80::1%eth0", "fe80::1"), ("example.com", None), ("1.2.3.4.5", None), ("", None),
        ("256.0.0.1", None), ("a" * 70, None),
    ],
)  # fmt: skip
def test_address_literals_are_classified(host: str, address: str | None) -> None:
    found = parse_literal(host)

    assert (found and str(found)) == address
