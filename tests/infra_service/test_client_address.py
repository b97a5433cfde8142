"""The client address of a request: its forms, and the headers of proxies."""

import ipaddress
import json
from typing import Any

import pytest
from django.test import Client

from apikeys.models import AuditEvent
from infra_service.lib.api.client_address import parse_address, settle_client
from tests.conftest import ClientWith
from tests.support.server import LiveServer, live_server

PROXY = "10.0.0.1"


def client_of(peer: str, forwarded: str | None = None) -> str:
    meta = {"REMOTE_ADDR": peer}
    if forwarded is not None:
        meta["HTTP_X_FORWARDED_FOR"] = forwarded
    settle_client(meta)
    return meta["REMOTE_ADDR"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        (" 192.0.2.7:1234 ", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("[::ffff:192.0.2.7]:80", "192.0.2.7"),
        ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%25eth0]:443", "fe80::1"),
    ],
)
def test_client_addresses_are_parsed(text: str, address: str) -> None:
    assert str(parse_address(text)) == address


@pytest.mark.parametrize(
    "text", ["", "unknown", "_hidden", "unix:", "example.com:80", "192.0.2", "[]:1", "1:2", "\0"]
)
def test_invalid_address_is_not_parsed(text: str) -> None:
    assert parse_address(text) is None


def test_header_is_ignored_without_a_proxy(settings: Any) -> None:
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("127.0.0.0/8")]

    assert client_of("127.0.0.1", "192.0.2.7") == "127.0.0.1"


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (None, PROXY),
        ("", PROXY),
        ("unknown", PROXY),
        ("6.6.6.6, unknown", PROXY),
        ("6.6.6.6, 192.0.2.7", "192.0.2.7"),
        ("6.6.6.6,192.0.2.7:1234", "192.0.2.7"),
        ("6.6.6.6, [2001:db8::1]:443", "2001:db8::1"),
    ],
)
def test_client_address_is_read_behind_a_single_proxy(
    forwarded: str | None, client: str, settings: Any
) -> None:
    settings.BEHIND_TLS_PROXY = True

    assert client_of(PROXY, forwarded) == client


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (PROXY, "6.6.6.6, 192.0.2.7, 10.0.0.2", "192.0.2.7"),
        (PROXY, "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        # The hop that reported "unknown" is the last known address.
        (PROXY, "192.0.2.7, unknown, 10.0.0.2", "10.0.0.2"),
        ("", "192.0.2.7", "192.0.2.7"),  # a Unix socket
        ("::ffff:10.0.0.1", "192.0.2.7", "192.0.2.7"),
        # Headers of untrusted proxies are ignored.
        ("198.51.100.1", "192.0.2.7", "198.51.100.1"),
    ],
)
def test_client_address_is_read_behind_several_proxies(
    peer: str, forwarded: str, client: str, settings: Any
) -> None:
    settings.BEHIND_TLS_PROXY = True
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("10.0.0.0/8")]

    assert client_of(peer, forwarded) == client


@pytest.mark.parametrize(("peer", "status"), [(PROXY, 404), ("198.51.100.1", 400)])
def test_only_a_trusted_proxy_declares_tls(peer: str, status: int, settings: Any) -> None:
    settings.BEHIND_TLS_PROXY = settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("10.0.0.0/8")]

    answer = Client().get(
        "/api/v1/nothing", REMOTE_ADDR=peer, headers={"X-Forwarded-Proto": "https"}
    )

    assert answer.status_code == status


@pytest.mark.parametrize("hop", ["192.0.2.7:80", "[2001:db8::1]:1", "unknown", "fe80::1%eth0", ""])
def test_the_trail_takes_every_hop(hop: str, client_with: ClientWith, settings: Any) -> None:
    """PostgreSQL's inet rejects other text, which made the whole change fail."""
    settings.BEHIND_TLS_PROXY = True

    answer = client_with("state:write").generic(
        "POST", "/api/v1/applications", json.dumps({"application": {"name": "x"}}),
        "application/json", headers={"X-Forwarded-For": hop},
    )  # fmt: skip

    assert answer.status_code == 201
    event = AuditEvent.objects.latest("id")
    assert event.address == str(parse_address(hop) or "127.0.0.1")


def test_gunicorn_ignores_forwarding_headers() -> None:
    """Not even a local process is trusted; SCRIPT_NAME would change the requested path."""
    with live_server(SECURE_SSL_REDIRECT="true") as server:
        for claim in (
            {"X-Forwarded-Proto": "https"},
            {"X-Forwarded-Protocol": "ssl"},
            {"X-Forwarded-Ssl": "on"},
        ):
            answer = server.request("GET", "/v1/whoami", headers=claim)
            assert (answer.status, answer.reason) == (400, "HTTPS_REQUIRED"), claim
        for name in ("SCRIPT_NAME", "PATH_INFO"):
            answer = server.request("GET", "/healthz", headers={name: "/x"})
            assert answer.status == 200
            assert path_in(server) == "/healthz"


def path_in(server: LiveServer) -> str:
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line[:1] == "{"]
    path: str = [line["path"] for line in lines if line.get("event") == "request"][-1]
    return path
