"""The client's address: the only place that reads addresses and proxy headers."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_WITH_PORT: Final = re.compile(r"\[([^\]]*)\](?::\d*)?|([^:]*):\d*")


def parse_address(text: str) -> Address | None:
    """Return the address without port and zone, an IPv4-mapped one as IPv4; None if it is none."""
    text = text.strip()
    if with_port := _WITH_PORT.fullmatch(text):
        text = with_port[1] or with_port[2] or ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def settle_client(meta: dict[str, Any]) -> None:
    """Make ``REMOTE_ADDR`` the client's address, which all else reads; empty if there is none.

    Behind a proxy it is the last entry of X-Forwarded-For that no proxy of ours has as its own
    address. An entry that is no address ends the search at the hop that wrote it. A peer that is
    not one of our proxies is the client, and its word on TLS does not count.
    """
    peer = client = parse_address(meta.get("REMOTE_ADDR", ""))
    if settings.BEHIND_TLS_PROXY:
        if not settings.TRUSTED_PROXIES or peer is None or _is_trusted(peer):
            client = _forwarded(meta.get("HTTP_X_FORWARDED_FOR", "")) or peer
        elif "HTTP_X_FORWARDED_PROTO" in meta:
            meta["HTTP_X_FORWARDED_PROTO"] = "http"
    meta["REMOTE_ADDR"] = "" if client is None else str(client)


def _forwarded(hops: str) -> Address | None:
    """Return the last address that is not a trusted proxy's, or else the first that is."""
    found = None
    for hop in reversed(hops.split(",")):
        address = parse_address(hop)
        if address is None:
            break
        found = address
        if not _is_trusted(address):
            break
    return found


def _is_trusted(address: Address) -> bool:
    return any(address in network for network in settings.TRUSTED_PROXIES)
