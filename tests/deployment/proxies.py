"""The proxy configurations in ``deploy/``, with the addresses and certificates of a test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tests.support.installation import ROOT

NGINX: Final = ROOT / "deploy" / "nginx.conf"
HAPROXY: Final = ROOT / "deploy" / "haproxy.cfg"
_SERVERS: Final = ("10.0.0.21:8000", "10.0.0.22:8000")


def nginx_file(listen: str, servers: Sequence[str]) -> str:
    """Return nginx's file with these addresses, and without TLS."""
    text = _replaced(NGINX.read_text(), "listen 443 ssl;", f"listen {listen};")
    return re.sub(r" +ssl_certificate.*\n", "", _with(text, servers))


def haproxy_file(listen: str, servers: Sequence[str]) -> str:
    """Return haproxy's file with these addresses, and without TLS."""
    bind = "bind :443 ssl crt /etc/haproxy/infra.example.pem"
    return _with(_replaced(HAPROXY.read_text(), bind, f"bind {listen}"), servers)


def _with(text: str, servers: Sequence[str]) -> str:
    for named, server in zip(_SERVERS, servers, strict=True):
        text = _replaced(text, named, server)
    return text


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old} stands {text.count(old)} times in the file"
    return text.replace(old, new)
