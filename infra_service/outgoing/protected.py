"""Where a secret may be sent to: where nobody can read it on its way."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_protected(url: str) -> bool:
    """Whether this is an address with TLS, or on this machine, and without a user."""
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
