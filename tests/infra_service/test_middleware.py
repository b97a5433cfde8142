"""Request ids, the access event, and the refusal of plain HTTP."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client

from apikeys.models import AuditEvent
from tests.conftest import ClientWith, error_reason


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


def events(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return the log lines since the last call."""
    lines = capfd.readouterr().err.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_a_good_request_id_stands_beside_ours(
    client_with: ClientWith, capfd: pytest.CaptureFixture[str]
) -> None:
    client = client_with("state:write")
    body = json.dumps({"application": {"name": "x"}})
    events(capfd)

    answer = client.generic(
        "POST", "/api/v1/applications", body, "application/json",
        headers={"X-Request-ID": "ci-42.a_b"},
    )  # fmt: skip

    ours = answer["X-Request-ID"]
    assert re.fullmatch("[0-9a-f]{32}", ours)
    (logged,) = events(capfd)
    recorded = AuditEvent.objects.latest("id")
    for request_id, client_request_id in (
        (logged["request_id"], logged["client_request_id"]),
        (recorded.request_id, recorded.client_request_id),
    ):
        assert (request_id, client_request_id) == (ours, "ci-42.a_b")


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "ä", "a/b"])
def test_another_is_not_taken(
    client: Client, given: str, capfd: pytest.CaptureFixture[str]
) -> None:
    client.get("/healthz", headers={"X-Request-ID": given})

    assert "client_request_id" not in events(capfd)[-1]


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/v1/api-keys"])
def test_plain_http_is_refused_and_not_redirected(client: Client, settings: Any, path: str) -> None:
    settings.SECURE_SSL_REDIRECT = True

    response = client.post(path)

    assert (response.status_code, error_reason(response)) == (400, "HTTPS_REQUIRED")


def test_https_behind_a_proxy_is_not_refused(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

    response = client.get("/api/v1/nothing", headers={"X-Forwarded-Proto": "https"})

    assert (response.status_code, error_reason(response)) == (404, "NOT_FOUND")


@pytest.mark.parametrize("name", ["X-Forwarded-Proto", "X-Forwarded-Ssl", "Forwarded"])
def test_forged_https_header_is_ignored(
    client: Client, settings: Any, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    claims = {"X-Forwarded-Proto": "https", "X-Forwarded-Ssl": "on", "Forwarded": "proto=https"}

    response = client.get("/v1/whoami", headers={name: claims[name]})

    assert (response.status_code, error_reason(response)) == (400, "HTTPS_REQUIRED")
    assert events(capfd)[-1]["reason"] == "HTTPS_REQUIRED"


def test_forged_host_header_is_ignored(client: Client, db: None) -> None:
    response = client.get("/api/docs/", headers={"X-Forwarded-Host": "evil.example"})

    assert response.status_code == 200
    assert b"evil.example" not in response.content


def settings_with(names: str, **environment: str) -> list[Any]:
    """Return the values of these settings in another process with this environment."""
    code = (
        "import json; from django.conf import settings as s; "
        f"print(json.dumps([getattr(s, n, None) for n in {names.split()}]))"
    )
    module = {"DJANGO_SETTINGS_MODULE": "infra_service.settings"}
    output = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, **module, **environment},
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    values: list[Any] = json.loads(output)
    return values


@pytest.mark.parametrize(
    ("given", "believed"),
    [("false", None), ("true", ["HTTP_X_FORWARDED_PROTO", "https"])],
)
def test_a_proxy_is_believed_only_when_it_is_set(given: str, believed: Any) -> None:
    assert settings_with("SECURE_PROXY_SSL_HEADER", BEHIND_TLS_PROXY=given) == [believed]


@pytest.mark.parametrize("setting", ["BEHIND_TLS_PROXY", "SECURE_SSL_REDIRECT"])
def test_cookies_are_for_https_where_it_is(setting: str) -> None:
    names = "SESSION_COOKIE_SECURE CSRF_COOKIE_SECURE"

    assert settings_with(names) == [False, False]
    assert settings_with(names, **{setting: "true"}) == [True, True]


def test_hsts_header_matches_the_settings(client: Client, settings: Any) -> None:
    names = "SECURE_HSTS_SECONDS SECURE_HSTS_INCLUDE_SUBDOMAINS SECURE_HSTS_PRELOAD"
    assert settings_with(names) == [0, False, False]
    assert settings_with(names, SECURE_HSTS_SECONDS="60") == [60, False, False]
    both = {"SECURE_HSTS_INCLUDE_SUBDOMAINS": "true", "SECURE_HSTS_PRELOAD": "true"}
    assert settings_with(names, SECURE_HSTS_SECONDS="60", **both) == [60, True, True]

    settings.SECURE_HSTS_SECONDS = 60
    header = client.get("/healthz", secure=True)["Strict-Transport-Security"]
    assert header == "max-age=60"


@pytest.mark.parametrize("path", ["/admin/login/", "/api/docs", "/api/docs/"])
def test_pages_run_our_own_scripts_only(client: Client, db: None, path: str) -> None:
    answer = client.get(path)

    policy = dict(part.split(" ", 1) for part in answer["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert re.findall(r"<script(?![^>]*\ssrc=)", answer.content.decode()) == []


def test_a_probe_comes_to_an_address_without_tls(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True

    assert client.get("/healthz", headers={"Host": "10.1.2.3:8000"}).status_code == 200


def test_people_are_redirected(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True

    response = client.get("/admin/")

    assert (response.status_code, response["Location"]) == (301, "https://testserver/admin/")


def test_single_event_per_request(
    client_with: ClientWith, capfd: pytest.CaptureFixture[str]
) -> None:
    client = client_with("state:read")
    events(capfd)

    response = client.get("/api/v1/nothing?ID=secret", headers={"X-Request-ID": "r1"})

    (event,) = events(capfd)
    assert event.pop("request_id") == response["X-Request-ID"]
    assert event.pop("duration_ms") > 0
    assert event.pop("bytes_out") == len(response.content)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", event.pop("time"))
    assert event == {
        "event": "request",
        "level": "info",
        "client_request_id": "r1",
        "method": "GET",
        "path": "/api/v1/nothing",
        "view": "<unnamed view>",
        "status": response.status_code,
        "queries": 0,
        "database_ms": 0.0,
        "bytes_in": 0,
        "address": "127.0.0.1",
        "reason": "NOT_FOUND",
    }


def test_the_event_names_the_token_by_its_id(
    client_with: ClientWith, capfd: pytest.CaptureFixture[str]
) -> None:
    client = client_with("state:read")
    events(capfd)

    client.get("/api/v1/state/x/env/y")

    (event,) = events(capfd)
    assert (event["token_id"], event["reason"]) == (client.token.pk, "INVALID_FIELDS")
    assert client.secret not in json.dumps(event)


def test_address_behind_a_proxy_is_used(
    client: Client, settings: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    headers = {"X-Forwarded-For": "6.6.6.6, 192.0.2.7"}
    client.get("/healthz", headers=headers)
    assert events(capfd)[-1]["address"] == "127.0.0.1"

    settings.BEHIND_TLS_PROXY = True
    client.get("/healthz", headers=headers)
    assert events(capfd)[-1]["address"] == "192.0.2.7"


def test_missing_slash_is_not_redirected() -> None:
    assert configured.APPEND_SLASH is False
