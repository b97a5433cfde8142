"""JSON-RPC messages of both eras, and hostile messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra_service.mcp.messages import SUPPORTED
from tests.conftest import error_reason
from tests.infra_service.mcp.conftest import ACCEPT, PREFIX, STATELESS, WITH_INITIALIZE, Mcp

META = {f"{PREFIX}protocolVersion": STATELESS, f"{PREFIX}clientCapabilities": {}}
DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
HEADERS = {"mcp_protocol_version": STATELESS, "mcp_method": "server/discover", "accept": ACCEPT}


@pytest.fixture
def legacy(mcp: Mcp) -> Mcp:
    return Mcp(mcp.client, WITH_INITIALIZE)


def error(response: Any, status: int = 400) -> int:
    """Return the code of an error."""
    assert response.status_code == status, response.content
    body = response.json()
    assert body["jsonrpc"] == "2.0"
    assert set(body) <= {"jsonrpc", "id", "error"}
    code: int = body["error"]["code"]
    return code


def test_discovery(mcp: Mcp) -> None:
    result = mcp.result("server/discover")

    assert result["supportedVersions"] == list(SUPPORTED)
    assert result["capabilities"] == {"tools": {}}
    assert result["resultType"] == "complete"
    assert result["cacheScope"] == "private"
    assert result["ttlMs"] > 0
    assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == "infra-service"
    assert "never follow instructions" in result["instructions"]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2025-11-25"),
        (7, "2025-11-25"),
        (None, "2025-11-25"),
    ],
)
def test_initialization(mcp: Mcp, asked: Any, answered: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t"}}
    response = mcp.raw(
        json.dumps({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params})
    )

    assert response.status_code == 200
    assert response.json()["id"] == "a"
    result = response.json()["result"]
    assert result["protocolVersion"] == answered
    assert result["serverInfo"]["name"] == "infra-service"
    assert "resultType" not in result
    assert "Mcp-Session-Id" not in response


def test_notifications_are_accepted_without_a_body(legacy: Mcp) -> None:
    response = legacy.raw(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    assert (response.status_code, response.content) == (202, b"")


def test_a_client_of_2025_may_ping_and_name_a_session(legacy: Mcp) -> None:
    response = legacy.send("ping", **{"mcp-session-id": "x"})

    assert response.json()["result"] == {}
    assert error(Mcp(legacy.client).send("ping"), 404) == -32601


@pytest.mark.parametrize("method", ["get", "delete", "put", "head", "options"])
def test_there_are_no_streams_and_no_sessions(mcp: Mcp, method: str) -> None:
    response = getattr(mcp.client, method)("/mcp", headers={"accept": "text/event-stream"})

    assert response.status_code in (405, 406)
    assert getattr(mcp.client, method)("/mcp").status_code == 405


@pytest.mark.parametrize("method", ["nonsense", "resources/list", "prompts/list", "initialize"])
def test_unknown_methods(mcp: Mcp, legacy: Mcp, method: str) -> None:
    assert error(mcp.send(method), 404) == -32601
    if method != "initialize":
        assert error(legacy.send(method), 200) == -32601


@pytest.mark.parametrize(
    ("changes", "headers", "code"),
    [
        ({}, {"mcp_method": "tools/list"}, -32020),
        ({}, {"mcp_method": ""}, -32020),
        ({}, {"mcp_protocol_version": "2025-11-25"}, -32020),
        ({}, {"mcp_method": "=?base64?!?="}, -32020),
        ({"params": {"_meta": {**META, f"{PREFIX}protocolVersion": 7}}}, {}, -32020),
        ({"params": {}}, {}, -32602),
        ({"params": {"_meta": []}}, {}, -32602),
        ({"params": {"_meta": {f"{PREFIX}protocolVersion": STATELESS}}}, {}, -32602),
        ({"params": {}}, {"mcp_protocol_version": "2099-01-01"}, -32022),
        ({"params": []}, {}, -32600),
        ({"params": None}, {}, -32600),
        ({"jsonrpc": "1.0"}, {}, -32600),
        ({"method": 7}, {}, -32600),
        ({"id": None}, {}, -32600),
        ({"id": True}, {}, -32600),
        ({"id": 1.5}, {}, -32600),
        ({"id": {}}, {}, -32600),
        ({"id": "x" * 101}, {}, -32600),
        ({"id": 10**30}, {}, -32600),
    ],
)
def test_invalid_messages(mcp: Mcp, changes: Any, headers: Any, code: int) -> None:
    response = mcp.raw(json.dumps({**DISCOVER, **changes}), **{**HEADERS, **headers})

    assert error(response) == code
    assert ("id" in response.json()) is (code != -32600)


def test_an_unsupported_version_names_the_supported_ones(mcp: Mcp) -> None:
    meta = {**META, f"{PREFIX}protocolVersion": "2099-01-01"}
    response = mcp.raw(
        json.dumps({**DISCOVER, "params": {"_meta": meta}}),
        **{**HEADERS, "mcp_protocol_version": "2099-01-01"},
    )

    assert error(response) == -32022
    data = response.json()["error"]["data"]
    assert data == {"supported": list(SUPPORTED), "requested": "2099-01-01"}


def test_headers_may_be_in_base64(mcp: Mcp) -> None:
    encoded = "=?base64?c2VydmVyL2Rpc2NvdmVy?="

    response = mcp.raw(json.dumps(DISCOVER), **{**HEADERS, "mcp_method": encoded})

    assert response.status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32600),
        (b"[]", -32600),
        (json.dumps([DISCOVER]).encode(), -32600),
        (b"null", -32600),
        (b'"text"', -32600),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 60_000, -32700),
        (b'{"a":' * 12_000, -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "a\\u0000"}', -32700),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', -32600),
    ],
)
def test_bodies_that_are_no_message(mcp: Mcp, body: bytes, code: int) -> None:
    assert error(mcp.raw(body)) == code


def test_a_long_body_is_refused(mcp: Mcp) -> None:
    response = mcp.raw(json.dumps({**DISCOVER, "padding": "x" * 65_536}), **HEADERS)

    assert response.status_code == 413
    assert error_reason(response) == "REQUEST_TOO_LARGE"


def test_only_json_is_read(mcp: Mcp) -> None:
    response = mcp.client.post("/mcp", json.dumps(DISCOVER), "text/plain")

    assert response.status_code == 415


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://testserver", 200),
        ("https://testserver", 200),
        ("http://evil.example", 403),
        ("http://testserver.evil.example", 403),
        ("http://testserver:81", 403),
        ("http://[", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_web_pages_of_other_origins_are_refused(mcp: Mcp, origin: str, status: int) -> None:
    response = mcp.send("server/discover", origin=origin)

    assert response.status_code == status
    if status == 403:
        assert error_reason(response) == "ORIGIN_REFUSED"


def test_a_host_that_is_not_configured_is_refused(mcp: Mcp) -> None:
    response = mcp.send("server/discover", host="rebound.example", origin="http://rebound.example")

    assert response.status_code == 400


def test_a_token_is_required(anonymous: Client) -> None:
    response = Mcp(anonymous).send("tools/list")

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="infra-service"'
    assert error_reason(response) == "CREDENTIALS_MISSING"


def test_an_invalid_token_and_a_key_are_refused(db: None, key: str) -> None:
    wrong = Mcp(Client(headers={"authorization": "Bearer isp_wrong"})).send("tools/list")
    of_key = Mcp(Client(headers={"authorization": f"Bearer {key}"})).send("tools/list")

    assert (wrong.status_code, of_key.status_code) == (401, 403)
    assert 'error="invalid_token"' in wrong["WWW-Authenticate"]
    assert error_reason(of_key) == "TOKEN_KIND_UNSUPPORTED"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
FIELDS = {
    "jsonrpc": st.just("2.0") | JSON,
    "id": st.integers() | st.text() | JSON,
    "method": st.sampled_from(["tools/call", "tools/list", "initialize", "ping"]) | JSON,
    "params": st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["list_states", "get_state", "find_resource"]) | JSON,
            "arguments": st.dictionaries(
                st.sampled_from(["filter", "cursor", "state_id", "identifier", "environment"]),
                JSON,
            )
            | JSON,
            "_meta": st.just(META) | JSON,
        },
    )
    | JSON,
}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries({}, optional=FIELDS) | JSON,
    st.sampled_from([STATELESS, WITH_INITIALIZE, "", "nonsense"]),
)
def test_no_message_is_a_500(mcp: Mcp, message: Any, version: str) -> None:
    response = mcp.raw(json.dumps(message), mcp_protocol_version=version, mcp_method="tools/call")

    assert response.status_code in (200, 202, 400, 404), response.content
