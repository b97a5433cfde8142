"""Determine the client's address. Only this module reads proxy headers."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Any, Final

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_WITH_PORT: Final = re.compile(r"\[([^\]]*)\](?::\d*)?|([^:]*):\d*")


@functools.lru_cache(maxsize=256)  # at most 8 KB each, like any header
def parse_address(text: str) -> Address | None:
    """Return the address without port and zone, or None. IPv4-mapped addresses become IPv4."""
    text = text.strip()
    if with_port := _WITH_PORT.fullmatch(text):
        text = with_port[1] or with_port[2] or ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def settle_client(meta: dict[str, Any]) -> None:
    """Set ``REMOTE_ADDR`` to the client's address, or to "" if it is unknown.

    Behind a proxy, the client is the last entry of X-Forwarded-For that is not a trusted proxy. An
    invalid entry ends the search, and the hop that added it counts as the client. A peer that is
    not a trusted proxy is the client itself, and its X-Forwarded-Proto is ignored.
    """
    peer = client = parse_address(meta.get("REMOTE_ADDR", ""))
    if settings.BEHIND_TLS_PROXY:
        if not settings.TRUSTED_PROXIES or peer is None or _is_trusted(peer):
            client = _forwarded(meta.get("HTTP_X_FORWARDED_FOR", "")) or peer
        elif "HTTP_X_FORWARDED_PROTO" in meta:
            meta["HTTP_X_FORWARDED_PROTO"] = "http"
    meta["REMOTE_ADDR"] = "" if client is None else str(client)


def _forwarded(hops: str) -> Address | None:
    """Return the last address of an untrusted hop, or else the first address."""
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
