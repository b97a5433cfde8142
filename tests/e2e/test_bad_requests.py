"""Invalid paths, parameters and headers: the exact reason, the error format, no redirect."""

from __future__ import annotations

import base64
import json
import uuid

import pytest

from tests.e2e.backend import Backend, document
from tests.e2e.forms import assert_error
from tests.e2e.wire import Wire
from tests.support.server import LiveServer

COMPONENT, ENVIRONMENT = uuid.UUID(int=1), uuid.UUID(int=2)
BAD_IDS = [
    "x",
    "1",
    COMPONENT.hex,
    f"{{{COMPONENT}}}",
    f"{COMPONENT}0",
    "%00",
    "%F0%9F%98%80",
    "%FF",
]


@pytest.mark.parametrize("bad", BAD_IDS)
@pytest.mark.parametrize("method", ["GET", "POST", "LOCK", "UNLOCK", "DELETE"])
def test_path_without_a_uuid_is_not_found(
    live: LiveServer, token: str, method: str, bad: str
) -> None:
    for field, pair in {
        "component_id": (bad, ENVIRONMENT),
        "environment_id": (COMPONENT, bad),
    }.items():
        path = f"/api/v1/state/{pair[0]}/env/{pair[1]}"
        answer = live.request(method, path, b"{}", token=token)
        assert_error(answer, 400, "INVALID_FIELDS")
        violations = answer.json()["error"]["details"][1]["field_violations"]
        description = (
            "not a UUID in the form 8-4-4-4-12; the address of a state by names is "
            "/api/v1/state/at/ followed by "
            "{component}/{environment} or {application}/{component}/{environment}"
        )
        assert violations == [
            {"field": field, "description": description, "reason": "INVALID_FORMAT"}
        ]


def test_uuids_are_of_any_case(backend: Backend) -> None:
    assert backend.push(document(1)).status == 200
    path = f"/api/v1/state/{str(backend.component_id).upper()}/env/{backend.environment_id}"
    answer = backend.server.request("GET", path, token=backend.token)
    assert (answer.status, answer.body) == (200, document(1))


@pytest.mark.parametrize("bad", ["x", "", "1", COMPONENT.hex, "%00", "%FF", f"{COMPONENT}%0A"])
def test_lock_id_without_a_uuid_is_rejected(backend: Backend, bad: str) -> None:
    answer = backend.send("POST", document(1), f"?ID={bad}")
    assert_error(answer, 400, "INVALID_FIELDS")
    assert answer.json()["error"]["details"][1]["field_violations"][0]["field"] == "ID"
    assert backend.get().status == 404


def basic(text: bytes) -> str:
    return "Basic " + base64.b64encode(text).decode()


BAD_CREDENTIALS = {
    "another scheme": "Digest username=ada",
    "no scheme": "isp_",
    "scheme only": "Bearer",
    "no token": "Bearer ",
    "no base64": "Basic !!!",
    "no ASCII": "Basic é",
    "half of base64": "Basic YWRhOg",
    "no colon": basic(b"ada"),
    "no password": basic(b"ada:"),
    "no UTF-8": basic(b"ada:\xff"),
    "wrong password": basic(b"ada:secret"),
    "unknown form": "Bearer abc",
    "another prefix": "Bearer ghp_" + "a" * 38,
    "non-ASCII": "Bearer isp_" + "é" * 38,
    "very long": "Bearer isp_" + "a" * 5000,
}


def assert_refused(backend: Backend, credentials: str) -> None:
    for method in ("GET", "POST", "LOCK", "UNLOCK", "DELETE"):
        headers = {"Authorization": credentials}
        answer = backend.server.request(method, backend.path, document(1), headers=headers)
        assert_error(answer, 401, "CREDENTIALS_INVALID")
        assert answer.headers["WWW-Authenticate"] == (
            'Bearer realm="infra-service", error="invalid_token", Basic realm="infra-service"'
        )
    assert backend.get().status == 404


@pytest.mark.parametrize("credentials", BAD_CREDENTIALS.values(), ids=BAD_CREDENTIALS.keys())
def test_bad_credentials_are_rejected(backend: Backend, credentials: str) -> None:
    assert_refused(backend, credentials)


def test_damaged_tokens_are_rejected(backend: Backend) -> None:
    """A changed character: in the checksum, or in the checked part."""
    good = backend.token
    for place in (4, len(good) - 1):
        other = "0" if good[place] != "0" else "1"
        assert_refused(backend, f"Bearer {good[:place]}{other}{good[place + 1 :]}")
    assert_refused(backend, f"Bearer iss_{good[4:]}")  # another kind
    assert_refused(backend, f"Bearer {good} x")


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_scheme_is_of_any_case(backend: Backend, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {backend.token}"}
    assert backend.server.request("GET", backend.path, headers=headers).status == 404


@pytest.mark.parametrize("user", ["", "ada", "ädä", "a" * 500])
def test_basic_takes_any_user_name(backend: Backend, user: str) -> None:
    headers = {"Authorization": basic(f"{user}:{backend.token}".encode())}
    assert backend.server.request("GET", backend.path, headers=headers).status == 404


def test_missing_credentials_are_rejected(backend: Backend) -> None:
    answer = backend.server.request("GET", backend.path)
    assert_error(answer, 401, "CREDENTIALS_MISSING")
    assert answer.headers["WWW-Authenticate"] == (
        'Bearer realm="infra-service", Basic realm="infra-service"'
    )


def test_credentials_are_checked_before_the_path(live: LiveServer) -> None:
    answer = live.request("GET", "/api/v1/state/x/env/y")
    assert_error(answer, 401, "CREDENTIALS_MISSING")


@pytest.mark.parametrize("method", ["POST", "LOCK", "UNLOCK"])
def test_scope_is_checked_before_the_path(live: LiveServer, reader_token: str, method: str) -> None:
    answer = live.request(method, "/api/v1/state/x/env/y", b"{}", token=reader_token)
    assert_error(answer, 403, "SCOPE_INSUFFICIENT")
    expected = 'Bearer error="insufficient_scope", scope="state:write"'
    assert answer.headers["WWW-Authenticate"] == expected


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_unknown_method_is_rejected(backend: Backend, method: str) -> None:
    assert_error(backend.send(method), 405, "METHOD_NOT_ALLOWED")


STATE = f"/api/v1/state/{COMPONENT}/env/{ENVIRONMENT}"
UNKNOWN = [
    "//", "/api", "/api/v1", "/api/v1/state", f"/api/v1/state/{COMPONENT}", f"{STATE}x/y",
    f"{STATE}//", f"{STATE}/versions/1/x", f"{STATE}/lock//", "/healthz//", "/v1",
    "/v1/api-keys/x/y", "/static", "/favicon.ico", "/.env", "/api/v1/../v1", "/%00", "/%FF",
]  # fmt: skip
KNOWN = {
    (STATE, "GET"): (404, "STATE_NOT_FOUND"),
    (STATE, "POST"): (400, "INVALID_DOCUMENT"),
    (STATE, "DELETE"): (404, "STATE_NOT_FOUND"),
    (STATE, "LOCK"): (400, "INVALID_LOCK_INFO"),
    (STATE, "UNLOCK"): (200, ""),
    (STATE, "PUT"): (405, "METHOD_NOT_ALLOWED"),
    (f"{STATE}/lock", "GET"): (405, "METHOD_NOT_ALLOWED"),
    (f"{STATE}/lock", "POST"): (400, "INVALID_LOCK_INFO"),
    (f"{STATE}/lock", "DELETE"): (200, ""),
    ("/healthz", "GET"): (200, ""),
    ("/healthz", "POST"): (405, "METHOD_NOT_ALLOWED"),
    ("/readyz", "GET"): (200, ""),
    ("/api/schema", "GET"): (200, ""),
    ("/api/schema", "POST"): (405, "METHOD_NOT_ALLOWED"),
    ("/api/docs", "GET"): (200, ""),
    ("/api/docs", "LOCK"): (405, "METHOD_NOT_ALLOWED"),
}


def assert_answered(
    live: LiveServer, token: str, method: str, path: str, *, expected: tuple[int, str]
) -> None:
    status, reason = expected
    answer = live.request(method, path, token=token)
    assert "Location" not in answer.headers
    if reason:
        assert_error(answer, status, reason)
    assert answer.status == status


@pytest.mark.parametrize("path", UNKNOWN)
@pytest.mark.parametrize("method", ["GET", "POST", "LOCK", "UNLOCK"])
def test_unknown_path_is_not_found(live: LiveServer, token: str, method: str, path: str) -> None:
    for suffix in ("", "/"):
        assert_answered(live, token, method, path + suffix, expected=(404, "NOT_FOUND"))


@pytest.mark.parametrize("suffix", ["", "/", "?x=1", "/?x=1"])
@pytest.mark.parametrize(("door", "expected"), KNOWN.items())
def test_final_slash_makes_no_difference(
    live: LiveServer, token: str, door: tuple[str, str], expected: tuple[int, str], suffix: str
) -> None:
    path, method = door
    assert_answered(live, token, method, path + suffix, expected=expected)


def test_wrong_host_is_rejected(live: LiveServer, token: str) -> None:
    answer = live.request("GET", STATE, token=token, headers={"Host": "elsewhere.example"})
    assert_error(answer, 400, "BAD_REQUEST")


@pytest.mark.parametrize("name", ["Content-Type", "Content-Encoding"])
def test_type_of_the_body_does_not_matter(backend: Backend, name: str) -> None:
    """Clients differ; only the bytes count."""
    headers = {name.replace("-", "_"): "text/odd"}
    assert backend.push(document(1), **headers).status == 200
    assert backend.get().body == document(1)


@pytest.mark.parametrize("given", ["a b", "x" * 65, "é", "<script>", ""])
def test_request_id_of_another_form_is_not_taken(backend: Backend, given: str) -> None:
    answer = backend.send("GET", X_Request_ID=given)
    assert answer.headers["X-Request-ID"] != given
    assert_error(answer, 404, "STATE_NOT_FOUND")


@pytest.mark.parametrize("accept", ["text/html", "image/png", "application/xml", "x"])
def test_only_json_is_there(backend: Backend, accept: str) -> None:
    assert_error(backend.send("GET", Accept=accept), 406, "NOT_ACCEPTABLE")


HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
BY_THE_SERVER = {
    "long address": (b"GET /?" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 414, "URI_TOO_LONG"),
    "long header": (HEAD + b"X: " + b"x" * 9000 + b"\r\n\r\n", 431, "HEADERS_TOO_LARGE"),
    "many headers": (HEAD + b"X: x\r\n" * 101 + b"\r\n", 431, "HEADERS_TOO_LARGE"),
    "no HTTP": (b"<token>\r\n\r\n", 400, "BAD_REQUEST"),
    "token as a method": (b"<token> / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "BAD_REQUEST"),
    "version": (b"GET / HTTP/7.1\r\nHost: localhost\r\n\r\n", 400, "BAD_REQUEST"),
    "header without a colon": (HEAD + b"Authorization Bearer <token>\r\n\r\n", 400, "BAD_REQUEST"),
    "unknown expectation": (HEAD + b"Expect: <token>\r\n\r\n", 417, "EXPECTATION_UNSUPPORTED"),
    "no Host": (b"GET / HTTP/1.1\r\n\r\n", 400, "BAD_REQUEST"),
    "no Host for a probe": (b"GET /healthz HTTP/1.1\r\nX: <token>\r\n\r\n", 400, "BAD_REQUEST"),
    "two of them": (HEAD + b"Host: localhost\r\n\r\n", 400, "BAD_REQUEST"),
    "unknown coding": (
        HEAD + b"Transfer-Encoding: <token>\r\n\r\n", 501, "TRANSFER_CODING_UNSUPPORTED"
    ),
}  # fmt: skip


def test_http_1_0_needs_no_host(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert wire.answer().status == 200


@pytest.mark.parametrize(
    ("data", "status", "reason"), BY_THE_SERVER.values(), ids=BY_THE_SERVER.keys()
)
def test_invalid_requests_are_refused_before_the_application(
    backend: Backend, data: bytes, status: int, reason: str
) -> None:
    """In the error format, logged once without the token (see conftest); the next request works."""
    before = backend.server.log.stat().st_size
    with Wire(backend) as wire:
        wire.send(data.replace(b"<token>", backend.token.encode()))
        answer = wire.answer()
        assert wire.is_closed()
    assert_error(answer, status, reason)
    assert answer.headers["Content-Type"] == "application/json"
    assert backend.token.encode() not in answer.body
    assert backend.get().status == 404
    new = [json.loads(line) for line in backend.server.log.read_bytes()[before:].splitlines()]
    (logged,) = [line for line in new if line.get("logger") == "gunicorn.error"]
    assert logged["request_id"] == answer.headers["X-Request-ID"]
