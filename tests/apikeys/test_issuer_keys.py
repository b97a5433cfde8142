"""Fetching an issuer's keys: few requests, no internal addresses, and short waits."""

from __future__ import annotations

import datetime as dt
import errno
import ipaddress
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apikeys.federation import fetching, key_cache
from apikeys.federation.fetching import is_allowed
from apikeys.federation.key_formats import KeySetError, usable_keys
from apikeys.models import Issuer
from infra_service.lib.http_client.addresses import is_protected
from infra_service.lib.http_client.deadline import Deadline
from tests.apikeys.exchanging import (
    LOOPBACK,
    REFUSED,
    Pipeline,
    refusal,
    why,
)
from tests.e2e.together import in_threads
from tests.infra_service.test_owned_connections import assert_nothing_is_owned
from tests.support.committed import db  # noqa: F401 - a fixture
from tests.support.issuer import DISCOVERY, KEYS, Key, claims_of, respond, sign

pytestmark = pytest.mark.usefixtures("db")
HOUR = dt.timedelta(hours=1)


def later(passed: dt.timedelta) -> None:
    """Let this much time pass for the keys of every issuer."""
    names = ("key_set_fetched_at", "key_set_asked_at", "key_set_settled_at")
    for issuer in Issuer.objects.all():
        moments = {name: getattr(issuer, name) - passed for name in names}
        Issuer.objects.update(**moments)


def fails(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b"{}", 503)


def test_they_are_fetched_once_and_kept(pipeline: Pipeline) -> None:
    assert [pipeline.exchange().status_code for _ in range(3)] == [200] * 3

    assert pipeline.server.requested == {DISCOVERY: 1, KEYS: 1}
    issuer = pipeline.issuer
    assert issuer.key_set == {
        "keys": [{k: v for k, v in pipeline.server.keys[0].public.items() if k != "use"}]
    }
    assert issuer.failures == 0


def test_an_address_of_keys_needs_no_discovery(pipeline: Pipeline) -> None:
    Issuer.objects.update(jwks_url=f"{pipeline.server.url}{KEYS}")

    assert pipeline.exchange().status_code == 200

    assert pipeline.server.requested == {KEYS: 1}


def test_inline_keys_are_not_fetched(pipeline: Pipeline) -> None:
    Issuer.objects.update(inline_keys={"keys": [pipeline.server.keys[0].public]})

    assert pipeline.exchange().status_code == 200

    assert not pipeline.server.requested


@pytest.mark.parametrize("keys", [{}, {"keys": []}, {"keys": [{"kty": "oct", "kid": "one"}]}])
def test_invalid_inline_keys_are_rejected(pipeline: Pipeline, keys: Any) -> None:
    Issuer.objects.update(inline_keys=keys)

    assert refusal(pipeline.exchange()) == REFUSED
    assert why() == "keys_unavailable"


def test_a_new_key_is_found(pipeline: Pipeline) -> None:
    pipeline.exchange()
    new = Key("two")
    pipeline.server.keys.append(new)
    later(key_cache.PAUSE)

    assert pipeline.exchange(sign(claims_of("GITHUB", pipeline.server.url), new)).status_code == 200

    assert pipeline.server.requested[KEYS] == 2


def test_a_key_that_is_taken_back_works_for_an_hour_at_most(pipeline: Pipeline) -> None:
    old = pipeline.server.keys[0]
    pipeline.exchange()
    pipeline.server.keys[0] = Key("two")
    token = sign(claims_of("GITHUB", pipeline.server.url), old)
    later(HOUR)

    assert refusal(pipeline.exchange(token)) == REFUSED
    assert why() == "key_unknown"


def test_unknown_keys_are_fetched_at_most_twice_a_minute(pipeline: Pipeline) -> None:
    claims = claims_of("GITHUB", pipeline.server.url)
    key = pipeline.server.keys[0]
    pipeline.exchange()
    pipeline.server.requested.clear()
    later(key_cache.PAUSE)

    for half in range(2):
        for number in range(20):
            token = sign(claims, key, kid=f"unknown {half} {number}")
            assert refusal(pipeline.exchange(token)) == REFUSED
        later(key_cache.PAUSE)

    assert pipeline.server.requested == {DISCOVERY: 2, KEYS: 2}
    assert why() == "key_unknown"


def test_clock_that_was_set_back_delays_no_fetch(pipeline: Pipeline) -> None:
    pipeline.exchange()
    new = Key("two")
    pipeline.server.keys.append(new)
    later(-HOUR)  # the last fetch was an hour ahead, and did not end before the clock was set back
    Issuer.objects.update(key_set_settled_at=timezone.now())

    assert pipeline.exchange(sign(claims_of("GITHUB", pipeline.server.url), new)).status_code == 200

    assert pipeline.server.requested[KEYS] == 2
    assert pipeline.issuer.key_set_fetched_at <= timezone.now()


def test_keys_go_on_while_the_issuer_is_away_for_an_hour(pipeline: Pipeline) -> None:
    pipeline.exchange()
    pipeline.server.answers(DISCOVERY, fails)
    later(HOUR)

    assert [pipeline.exchange().status_code for _ in range(3)] == [200] * 3

    # The first exchange retried the fetch; the next two did not repeat it.
    assert pipeline.server.requested[DISCOVERY] == 2
    assert pipeline.issuer.failures == 1
    later(23 * HOUR - dt.timedelta(minutes=1))
    assert pipeline.exchange().status_code == 200


def test_keys_end_when_the_issuer_is_away_for_two_days(pipeline: Pipeline) -> None:
    pipeline.exchange()
    pipeline.server.answers(DISCOVERY, fails)
    later(48 * HOUR)

    assert refusal(pipeline.exchange()) == REFUSED
    assert why() == "keys_unavailable"
    # It is back.
    pipeline.server.reset()
    later(key_cache.PAUSE)
    assert pipeline.exchange().status_code == 200
    assert pipeline.issuer.failures == 0


def test_keys_that_come_after_the_issuer_was_changed_are_not_kept(pipeline: Pipeline) -> None:
    def changes(handler: BaseHTTPRequestHandler) -> None:
        # Another process has changed the address meanwhile.
        in_threads([lambda: Issuer.objects.change(name="changed")])
        respond(handler, b'{"keys": []}')

    Issuer.objects.update(jwks_url=f"{pipeline.server.url}{KEYS}")
    issuer = pipeline.issuer
    Issuer.objects.change(name="changed")
    key_cache._fetch_into_row(issuer)

    assert pipeline.issuer.key_set is None


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="threads share a database in memory, where no lock waits"
)
def test_concurrent_requests_fetch_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All later requests wait for the keys, across processes."""
    many, barrier = 12, threading.Barrier(12)
    began = key_cache._begin_fetch

    def all_have_asked(issuer: Issuer) -> bool:
        barrier.wait(60)
        return began(issuer)

    monkeypatch.setattr(key_cache, "_begin_fetch", all_have_asked)
    found = in_threads(
        [lambda: key_cache.key_set_with(pipeline_issuer(pipeline), "one") for _ in range(many)]
    )

    assert len(found) == many
    assert pipeline.server.requested == {DISCOVERY: 1, KEYS: 1}


def pipeline_issuer(pipeline: Pipeline) -> Issuer:
    return Issuer.objects.get(pk=pipeline.issuer.pk)


def test_few_wait_for_a_slow_issuer(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_cache, "_waiting", threading.BoundedSemaphore(1))
    key_cache._waiting.acquire()
    Issuer.objects.update(key_set_asked_at=timezone.now())

    answer = pipeline.exchange()

    assert answer.status_code == 503
    assert answer["Retry-After"] == "1"


def test_abandoned_fetch_is_repeated(pipeline: Pipeline) -> None:
    Issuer.objects.update(key_set_asked_at=timezone.now() - dt.timedelta(seconds=10))

    assert refusal(pipeline.exchange()) == REFUSED
    later_asked = timezone.now() - key_cache.PAUSE
    Issuer.objects.update(key_set_asked_at=later_asked)
    assert pipeline.exchange().status_code == 200


# --- Rejected responses ---------------------------------------------------------------------------


def redirect(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b"", 302, Location=KEYS)


def five_megabytes(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b'{"keys": [' + b" " * 5 * 1024 * 1024 + b"]}")


def endless_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    for number in range(90):
        handler.send_header(f"X-{number}", "x" * 1000)
    handler.end_headers()


def no_json(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b"<html>")


def deep_json(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b"[" * 60_000)


def many_keys(handler: BaseHTTPRequestHandler) -> None:
    keys = b",".join([b'{"kty": "EC", "kid": "one"}'] * 21)
    respond(handler, b'{"keys": [' + keys + b"]}")


def another_issuer(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b'{"issuer": "https://elsewhere.example", "jwks_uri": "x"}')


def plain_address(handler: BaseHTTPRequestHandler) -> None:
    url = f"https://{handler.headers['Host']}"
    body = f'{{"issuer": "{url}", "jwks_uri": "http://{handler.headers["Host"]}{KEYS}"}}'
    respond(handler, body.encode())


def a_file(handler: BaseHTTPRequestHandler) -> None:
    url = f"https://{handler.headers['Host']}"
    respond(handler, f'{{"issuer": "{url}", "jwks_uri": "file:///etc/passwd"}}'.encode())


def no_address(handler: BaseHTTPRequestHandler) -> None:
    url = f"https://{handler.headers['Host']}"
    respond(handler, f'{{"issuer": "{url}", "jwks_uri": ["x"]}}'.encode())


def half(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"keys"')


NOT_READ = {
    "a redirect": (KEYS, redirect),
    "a redirect of the discovery": (DISCOVERY, redirect),
    "5 MB": (KEYS, five_megabytes),
    "endless headers": (KEYS, endless_headers),
    "no JSON": (KEYS, no_json),
    "deep JSON": (KEYS, deep_json),
    "too many keys": (KEYS, many_keys),
    "a half": (KEYS, half),
    "an error": (KEYS, fails),
    "another issuer": (DISCOVERY, another_issuer),
    "an address without TLS": (DISCOVERY, plain_address),
    "an address of a file": (DISCOVERY, a_file),
    "no address": (DISCOVERY, no_address),
}


@pytest.mark.parametrize("what", NOT_READ)
def test_unusable_responses_are_rejected(pipeline: Pipeline, what: str) -> None:
    path, answer = NOT_READ[what]
    pipeline.server.answers(path, answer)

    assert refusal(pipeline.exchange()) == REFUSED

    assert why() == "keys_unavailable"
    assert pipeline.issuer.failures == 1
    assert pipeline.issuer.key_set is None


@pytest.fixture
def slow(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An issuer that sends a byte now and then, until the test is over."""
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not over.wait(0.05):
            handler.wfile.write(b" ")

    pipeline.server.answers(KEYS, drip)
    monkeypatch.setattr(key_cache, "SECONDS", 0.5)
    yield over
    over.set()


def test_a_slow_answer_ends_in_time_and_holds_no_connection(
    pipeline: Pipeline, slow: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte is in time, and all of them are not."""
    left = Deadline.left
    looked = []

    def and_look(self: Any) -> float:
        assert_nothing_is_owned()
        looked.append(self)
        return left(self)

    monkeypatch.setattr(Deadline, "left", and_look)

    assert refusal(pipeline.exchange()) == REFUSED

    assert why() == "keys_unavailable"
    assert len(looked) > 5
    assert len({id(deadline) for deadline in looked}) == 1


def test_slow_name_resolution_times_out(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60))
    monkeypatch.setattr(key_cache, "SECONDS", 0.1)

    assert refusal(pipeline.exchange()) == REFUSED
    over.set()
    assert why() == "keys_unavailable"


def test_five_seconds_are_for_all_of_it() -> None:
    assert fetching.SECONDS == 5


# --- Internal addresses ---------------------------------------------------------------------------


def test_private_address_is_refused(pipeline: Pipeline, settings: Any) -> None:
    settings.ISSUER_NETWORKS = []

    assert refusal(pipeline.exchange()) == REFUSED

    assert why() == "keys_unavailable"
    assert not pipeline.server.requested


def test_a_name_that_resolves_elsewhere_the_second_time(
    pipeline: Pipeline, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection uses the checked address without resolving the name again."""
    settings.ISSUER_NETWORKS = []
    port = int(pipeline.server.url.rpartition(":")[2])
    resolved, connected = [], []
    answers = iter([("93.184.215.14", port), ("127.0.0.1", port)])

    def resolve(host: str, *_: Any, **__: Any) -> Any:
        resolved.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", next(answers))]

    def connect(self: Any, address: Any) -> None:
        connected.append(address)
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", connect)
    url = f"https://rebinding.example:{port}/keys"
    with pytest.raises(fetching.FetchError, match="Connection refused"):
        fetching.fetch_json(url, "", Deadline(5))
    with pytest.raises(fetching.FetchError, match="private address"):
        fetching.fetch_json(url, "", Deadline(5))

    assert resolved == ["rebinding.example"] * 2
    assert connected == [("93.184.215.14", port)]


def test_name_with_a_private_address_is_rejected(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ISSUER_NETWORKS = []
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))
        for address in ("93.184.215.14", "10.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    with pytest.raises(fetching.FetchError, match="private address"):
        fetching.fetch_json("https://mixed.example", "", Deadline(5))


ADDRESSES = {
    "93.184.215.14": True,
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c": True,
    "64:ff9b::5db8:d70e": True,  # 93.184.215.14, where there is no IPv4
    "127.0.0.1": False,
    "0.0.0.0": False,
    "10.1.2.3": False,
    "172.16.0.1": False,
    "192.168.1.1": False,
    "169.254.169.254": False,
    "100.64.0.1": False,
    "224.0.0.1": False,
    "255.255.255.255": False,
    "::1": False,
    "::": False,
    "fe80::1": False,
    "fd00::1": False,
    "ff02::1": False,
    "::ffff:127.0.0.1": False,
    "64:ff9b::7f00:1": False,
    "64:ff9b::a9fe:a9fe": False,
    "2002:7f00:1::1": False,
    "2002:808:808::1": False,
    "64:ff9b:1::808:808": False,
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_allowed_addresses_are_fetched(address: str, settings: Any) -> None:
    settings.ISSUER_NETWORKS = []

    assert is_allowed(ipaddress.ip_address(address)) is ADDRESSES[address]


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://example.com/", True), ("http://localhost:8000/", True),
        ("http://127.0.0.1/", True), ("http://[::1]/", True), ("http://example.com/", False),
        ("http://10.0.0.1/", False), ("https://a@example.com/", False),
        ("https://example.com:0/", False), ("https://", False), ("https://[::1", False),
        ("ftp://localhost/", False),
    ],
)  # fmt: skip
def test_where_a_secret_may_be_sent(url: str, is_safe: bool) -> None:
    assert is_protected(url) is is_safe


def test_configured_networks_are_allowed(settings: Any) -> None:
    settings.ISSUER_NETWORKS = [LOOPBACK]

    assert is_allowed(ipaddress.ip_address("::ffff:127.0.0.1"))
    assert not is_allowed(ipaddress.ip_address("10.1.2.3"))
    settings.ISSUER_NETWORKS = [ipaddress.ip_network("10.1.2.3/32")]
    assert is_allowed(ipaddress.ip_address("64:ff9b::a01:203"))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "file:///etc/passwd", "https://", "https://a@127.0.0.1/", "//x/",
        "https://127.0.0.1:0/", "https://127.0.0.1:x/", "https://127.0.0.1/a b", "https://é/",
        "https://127.0.0.1/\r\nX: y", "https://[::1", "",
    ],
)  # fmt: skip
def test_invalid_urls_are_rejected(url: str, settings: Any) -> None:
    settings.ISSUER_NETWORKS = [LOOPBACK]

    with pytest.raises(fetching.FetchError, match="URL"):
        fetching.fetch_json(url, "", Deadline(5))


def test_its_certificate_must_be_vouched_for(pipeline: Pipeline) -> None:
    Issuer.objects.update(ca="")

    assert refusal(pipeline.exchange()) == REFUSED
    assert why() == "keys_unavailable"
    Issuer.objects.update(ca="no certificate", key_set_asked_at=None)
    assert refusal(pipeline.exchange()) == REFUSED


def test_only_verification_keys_are_stored() -> None:
    private = {"kty": "EC", "kid": "one", "crv": "P-256", "x": "x", "y": "y", "d": "secret"}
    others: list[Any] = [
        "x",
        {**private, "use": "enc"},
        {**private, "kid": ""},
        {**private, "kid": 1},
        {**private, "kty": ["EC"]},
        {**private, "x": 5},
        {**private, "kid": "a\0b"},
    ]

    kept = usable_keys({"keys": [*others, private]})

    assert kept == {"keys": [{k: v for k, v in private.items() if k != "d"}]}
    for wrong in (None, [], {"keys": None}, {"keys": others}, {"keys": [private] * 21}):
        with pytest.raises(KeySetError):
            usable_keys(wrong)
