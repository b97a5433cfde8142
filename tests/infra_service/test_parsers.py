"""JSON bodies: whatever is sent, never a 500."""

import contextlib
import json
from typing import Any

import pytest
from django.http import UnreadablePostError
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from infra_service.lib.api.parsers import JsonParser, has_nul
from states.errors import InvalidLockInfo
from states.lockinfo import LockInfo
from tests.apikeys.conftest import KeyOwner
from tests.conftest import error_reason

PATH = "/v1/api-keys"


def parse(body: bytes) -> Any:
    request = Request(RequestFactory().post("/", body, "application/json"), parsers=[JsonParser()])
    return request.data


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": [1, 2.5, "x", true, null]}', {"a": [1, 2.5, "x", True, None]}),
        ('{"name": "\u00e9\U0001f600"}'.encode(), {"name": "\u00e9\U0001f600"}),
        (b'{"a": "\\\\u0000"}', {"a": "\\u0000"}),
        (b'{"\\\\u0000": "\\\\\\\\u0000"}', {"\\u0000": "\\\\u0000"}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b"", {}),
        (b'[{"a": 1}, {"a": 1, "A": 2}]', [{"a": 1}, {"a": 1, "A": 2}]),
        (b'{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    ],
)
def test_valid_json_is_parsed(body: bytes, value: Any) -> None:
    assert parse(body) == value


NOT_JSON: dict[str, bytes] = {
    "text": b"name=x",
    "half": b'{"name": ',
    "more": b"{} {}",
    "single quotes": b"{'name': 'x'}",
    "NaN": b'{"name": NaN}',
    "Infinity": b'{"name": -Infinity}',
    "bytes that are not UTF-8": b'{"name": "\xff"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"name": "x"}',
    "nested": b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a lone surrogate": b'{"name": "\\ud800"}',
    "NUL": b'{"name": "\\u0000"}',
    "NUL in a name": b'{"\\u0000": 1}',
    "NUL deep inside": b'{"a": [{"b": ["x\\u0000y"]}]}',
    "NUL after an escaped backslash": b'{"name": "\\\\\\u0000"}',
    "NUL beside an escaped backslash": b'{"name": "\\\\u0000", "scopes": ["\\u0000"]}',
    "a raw NUL": b'{"name": "\x00"}',
    "a huge integer": b'{"name": 1' + b"0" * 5000 + b"}",
    "a huge float": b'{"name": 1e999}',
    "a member twice": b'{"name": "a", "name": "a"}',
    "a member twice, escaped": b'{"name": "a", "n\\u0061me": "b"}',
    "a member twice, inside": b'{"api_key": {"scopes": ["state:read"], "scopes": ["state:write"]}}',
    "a member twice, in a list": b'{"a": [{}, {"b": 1, "c": 2, "b": null}]}',
}


@pytest.mark.both
@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_invalid_json_gets_400(owner: KeyOwner, body: bytes) -> None:
    response = owner.send("POST", PATH, body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_JSON")


def test_the_member_that_is_there_twice_is_named(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH, NOT_JSON["a member twice, inside"])

    message = response.json()["error"]["message"]
    assert message == "The member 'scopes' is repeated in an object."


@pytest.mark.parametrize(
    "value", [b"123456789012345678901234567890", b"-1e300", b"[[[[]]]]", b'{"a":{}}', b"false"]
)
@pytest.mark.parametrize(
    "field", ["name", "scopes", "expires_at", "binding", "update_mask", "ttl", "kind"]
)
def test_any_value_in_any_field_gets_a_response(owner: KeyOwner, field: str, value: bytes) -> None:
    body = b'{"%s": %s}' % (field.encode(), value)

    for method, path in (
        ("POST", PATH),
        ("PATCH", owner.path),
        ("POST", "/v1/access-tokens"),
        ("POST", owner.path + ":rotate"),
    ):
        assert owner.send(method, path, body).status_code == 400


def test_too_large_input_is_rejected(owner: KeyOwner, settings: Any) -> None:
    response = owner.send("POST", PATH, b'"' + b"x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE + b'"')

    assert (response.status_code, error_reason(response)) == (413, "REQUEST_TOO_LARGE")
    info = response.json()["error"]["details"][0]
    assert info["metadata"] == {"limit_bytes": str(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)}


def test_very_many_unknown_fields_are_answered_shortly(owner: KeyOwner) -> None:
    response = owner.send("POST", PATH, {f"field{number}": 1 for number in range(50_000)})

    assert response.status_code == 400
    assert len(response.content) < 5_000


def test_disconnected_client_is_handled() -> None:
    class Gone:
        @property
        def body(self) -> bytes:
            raise UnreadablePostError("gone")

    class Wrapped:
        _request = Gone()

    with pytest.raises(ParseError, match="closed before"):
        JsonParser().parse(None, parser_context={"request": Wrapped()})


@given(st.text("\\\0u0a", max_size=12))
def test_nul_is_found_exactly_where_it_is(text: str) -> None:
    assert has_nul(json.dumps([text]).encode()) == ("\0" in text)


@given(st.binary(max_size=200))
def test_any_bytes_get_a_response(body: bytes) -> None:
    with contextlib.suppress(ParseError):
        parse(body)


def test_no_depth_of_nesting_is_a_fault_of_ours() -> None:
    """The decoders have limits of their own, which are not far apart."""
    for depth in range(900, 1050):
        for begin, end in ((b"[", b"]"), (b'{"a":', b"}")):
            body = begin * depth + b"1" + end * depth
            with contextlib.suppress(ParseError):
                parse(body)
            with contextlib.suppress(InvalidLockInfo):
                LockInfo.parse(
                    b'{"ID": "7e57c0de-0000-4000-8000-0000000000ab", "x": ' + body + b"}"
                )
