"""Text is UTF-8 on every path, and codecs named by clients are never looked up."""

from __future__ import annotations

import codecs
import io
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.urls import set_script_prefix
from hypothesis import given
from hypothesis import strategies as st

from infra_service.lib.server.handler import ServiceHandler, ServiceRequest
from tests.conftest import ClientWith

STATE = f"/api/v1/state/{uuid.UUID(int=1)}/env/{uuid.UUID(int=2)}"
PATHS = [
    "/api/v1/states", STATE, "/v1/whoami", "/admin/login/", "/admin/", "/api/docs", "/api/schema",
    "/nothing",
]  # fmt: skip
PROBES = ["/healthz", "/readyz", "/metrics"]
ENCODINGS = [
    "hex", "idna", "utf-7", "rot13", "zlib", "bz2", "base64", "undefined", "punycode", "utf-16",
    "utf-32", "unicode_escape", "latin-1", "cp037", "nothing-known", "..", "a\0b", "x" * 5000, "é",
]  # fmt: skip
HEADERS = [
    ("CONTENT_TYPE", "text/plain; charset={}"),
    ("CONTENT_TYPE", 'multipart/form-data; boundary=b; charset="{}"'),
    ("CONTENT_TYPE", "text/plain; charset*=utf-8''{}"),
    ("CONTENT_TYPE", "text/plain; charset*={}''%80"),
    ("CONTENT_TYPE", "text/plain; x*0*={}''%80"),
    ("CONTENT_TYPE", "text/plain; x*\xa0= {}''%80"),
    ("HTTP_ACCEPT", "application/json; x*={}''%80"),
]


class Door:
    """The service as a WSGI server calls it."""

    def __init__(self) -> None:
        self._handler = ServiceHandler()

    def send(self, path: str, method: str = "GET", body: bytes = b"", **given: Any) -> Any:
        """Return the status and the body of the response."""
        environ = {
            "REQUEST_METHOD": method, "PATH_INFO": path, "SERVER_NAME": "localhost",
            "SERVER_PORT": "80", "REMOTE_ADDR": "127.0.0.1", "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), **given,
        }  # fmt: skip
        statuses: list[str] = []
        response = self._handler(environ, lambda status, _headers: statuses.append(status))
        answered = b"".join(response)
        response.close()
        return int(statuses[0].split(" ")[0]), answered


def reason(answer: bytes) -> str:
    """Return the reason from the JSON error, or from the equivalent error page."""
    if b"<h1>The request is malformed.</h1>" in answer:
        return "BAD_REQUEST"
    return str(json.loads(answer)["error"]["details"][0]["reason"])


@pytest.fixture
def door(db: None) -> Iterator[Door]:
    signals = (request_started, request_finished)
    for signal in signals:  # they would end the transaction of the test
        signal.disconnect(close_old_connections)
    yield Door()
    for signal in signals:
        signal.connect(close_old_connections)
    set_script_prefix("/")


@pytest.fixture
def unknown() -> Iterator[list[str]]:
    """The unknown encodings that Python was asked for, each of which it caches."""
    names: list[str] = []
    codecs.register(names.append)
    yield names
    codecs.unregister(names.append)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda name: name[:20])
def test_text_is_utf_8(encoding: str, door: Door, unknown: list[str]) -> None:
    for header, value in HEADERS:
        named = {header: value.format(encoding), "QUERY_STRING": "x=%80"}
        status, answer = door.send("/admin/login/", **named)
        assert (status, reason(answer)) == (400, "BAD_REQUEST")
        assert door.send("/healthz", **named)[0] == 200
    assert unknown == []


@pytest.mark.parametrize("encoding", ["latin-1", "ISO-8859-1", "utf-16", "windows-1252", "x" * 99])
@pytest.mark.parametrize("path", ["/v1/api-keys", STATE, "/nothing"])
def test_another_charset_is_named(path: str, encoding: str, door: Door) -> None:
    status, answer = door.send(
        path, "POST", b"{}", CONTENT_TYPE=f"application/json; charset={encoding}"
    )

    assert (status, reason(answer)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert (
        f"The charset '{encoding[:64]}' of the Content-Type"
        in json.loads(answer)["error"]["message"]
    )


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["x=a%ff", "%ff=a", "a=b&x=%C3", "x=\xff", "x=%ED%A0%80"])
def test_a_query_is_utf_8(path: str, query: str, door: Door) -> None:
    status, answer = door.send(path, QUERY_STRING=query)

    assert (status, reason(answer)) == (
        400,
        "BAD_REQUEST" if "/admin/" in path else "INVALID_FIELDS",
    )


def test_a_byte_that_is_not_utf_8_has_its_place_in_a_filter(door: Door) -> None:
    query = "filter=field%5B%27name%27%5D%20=%20%27%C3%A9a%ff%27"
    status, answer = door.send("/v1/api-keys", QUERY_STRING=query)

    assert (status, reason(answer)) == (400, "INVALID_FILTER")
    metadata = json.loads(answer)["error"]["details"][0]["metadata"]
    assert metadata == {"code": "character", "position": "19"}


@pytest.mark.parametrize("query", ["x=%C3%A9", "x=\xc3\xa9", "x=%EF%BF%BD", "x=%", "x=%zz", "+%2B"])
def test_a_query_in_utf_8_is_read(query: str, door: Door) -> None:
    assert door.send("/admin/login/", QUERY_STRING=query)[0] == 200


@pytest.mark.parametrize("encoding", ["hex", "idna"])
def test_every_path_rejects_unknown_codecs(
    encoding: str, door: Door, client_with: ClientWith
) -> None:
    form = b"--b\r\nContent-Disposition: form-data; name=username\r\n\r\n+2AA-\r\n--b--\r\n"
    named = {
        "CONTENT_TYPE": f"multipart/form-data; boundary=b; charset={encoding}",
        "HTTP_AUTHORIZATION": f"Bearer {client_with('state:read').secret}",
        "QUERY_STRING": "x=%80&next=+2AA-",
    }
    for method, body in (("GET", b""), ("POST", form)):
        for path in PATHS:
            status, answer = door.send(path, method, body, **named)
            is_page = path.startswith("/admin/")
            wanted = (400, "BAD_REQUEST") if is_page else (415, "UNSUPPORTED_MEDIA_TYPE")
            assert (path, status, reason(answer)) == (path, *wanted)
    assert [door.send(path, **named)[0] for path in PROBES] == [200, 200, 200]


@pytest.mark.parametrize("charset", ["utf-8", "UTF8", "us-ascii", '"utf-8"'])
def test_utf_8_charsets_are_accepted(charset: str, door: Door) -> None:
    content_type = f"text/plain; charset={charset}"
    given = {"CONTENT_TYPE": content_type, "HTTP_ACCEPT": "text/html, */*;q=0.8, a/*"}

    assert door.send("/admin/login/", QUERY_STRING="next=a", **given)[0] == 200


@pytest.mark.parametrize("line", ["Content-Disposition: form-data; name*=n-1''a", "X: y; z* =n''"])
def test_a_part_of_a_form_names_no_encoding(line: str, door: Door, unknown: list[str]) -> None:
    body = f"--b\r\n{line}\r\n\r\nx\r\n--b--\r\n".encode()
    given = {
        "CONTENT_TYPE": "multipart/form-data; boundary=b",
        "HTTP_COOKIE": "csrftoken=" + "a" * 32,
    }

    status, answer = door.send("/admin/login/", "POST", body, **given)

    assert (status, reason(answer)) == (400, "BAD_REQUEST")
    assert unknown == []


@pytest.mark.parametrize("path", ["/admin/login/", "/admin/nothing/"])
def test_cookies_without_nul_are_read(path: str, door: Door) -> None:
    assert door.send(path, HTTP_COOKIE='sessionid="abcdefgh\\000"')[0] in (200, 302)

    environ = {"REQUEST_METHOD": "GET", "HTTP_COOKIE": 'a="b\\000"; c="d\\073"'}
    assert ServiceRequest(environ | {"wsgi.input": io.BytesIO()}).COOKIES == {"c": "d;"}


def test_many_cookies_are_ignored() -> None:
    """Python 3.11.7 needs 15 s of CPU time for this value."""
    cookies = 'a="' + "\\000" * 200_000 + '"'
    environ = {"REQUEST_METHOD": "GET", "HTTP_COOKIE": cookies, "wsgi.input": io.BytesIO()}

    assert ServiceRequest(environ).COOKIES == {}


def test_asterisks_take_linear_time() -> None:
    line = "x:" + "*" * 20_000
    body = f"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n{line}\r\n--b--\r\n".encode()
    environ = {
        "REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "multipart/form-data; boundary=b", "HTTP_ACCEPT": line,
    }  # fmt: skip

    started = time.process_time()
    assert ServiceRequest(environ).POST.dict() == {"a": line}

    assert time.process_time() - started < 1


def test_a_form_in_parts_is_read(door: Door) -> None:
    body = b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx *= y\r\n--b--\r\n"
    environ = {
        "REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "multipart/form-data; boundary=b",
    }  # fmt: skip
    assert ServiceRequest(environ).POST.dict() == {"a": "x *= y"}


@given(st.text(st.characters(max_codepoint=255)), st.text(st.characters(max_codepoint=255)))
def test_any_header_gets_a_response(content_type: str, accept: str) -> None:
    environ = {"REQUEST_METHOD": "GET", "wsgi.input": io.BytesIO(), "QUERY_STRING": "x=%80"}
    for value in (content_type, f"a/b;{content_type}", f"a/b;charset={content_type}"):
        request = ServiceRequest({**environ, "CONTENT_TYPE": value, "HTTP_ACCEPT": accept})
        assert request.GET["x"] == "\ufffd"
