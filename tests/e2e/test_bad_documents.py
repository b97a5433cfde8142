"""Invalid documents: 400 with a reason, nothing stored, never 500."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.backend import Backend, content_md5, document, lock_info
from tests.e2e.database import problems, snapshot
from tests.e2e.forms import assert_error

DEEP = 100_000


@pytest.fixture
def untouched(backend: Backend) -> Iterator[Backend]:
    """A state that the test leaves unchanged, and that still accepts a valid document."""
    assert backend.push(document(7)).status == 200
    yield backend
    assert backend.get().body == document(7)
    assert backend.holder() is None
    assert backend.push(document(8)).status == 200
    assert problems(backend) == []


def head(**values: Any) -> bytes:
    return json.dumps({"version": 4, "serial": 8, "lineage": "lineage", **values}).encode()


NO_JSON = {
    "empty": b"",
    "space": b" \n",
    "text": b"hello",
    "html": b"<html></html>",
    "not closed": b'{"serial": 8',
    "something after it": document(8) + b"x",
    "two documents": document(8) * 2,
    "comma at the end": b'{"serial": 8,}',
    "single quotes": b"{'serial': 8}",
    "comment": b"{/* serial */}",
    "NaN": b'{"serial": 8, "a": NaN}',
    "Infinity": b'{"serial": 8, "a": Infinity}',
    "-Infinity": b'{"serial": 8, "a": [-Infinity]}',
    "number with a zero before it": b'{"serial": 8, "a": 01}',
    "byte order mark": b"\xef\xbb\xbf" + document(8),
    "UTF-16": document(8).decode().encode("utf-16"),
    "Latin-1": b'{"serial": 8, "a": "caf\xe9"}',
    "surrogate in UTF-8": b'{"serial": 8, "a": "\xed\xa0\x80"}',
    "overlong UTF-8": b'{"serial": 8, "a": "\xc0\x80"}',
    "UTF-8 cut off": b'{"serial": 8, "a": "\xe2\x82',
    "lone surrogate escape": b'{"serial": 8, "a": "\\ud800"}',
    "lone surrogate as lineage": b'{"serial": 8, "lineage": "\\udfff"}',
    "NUL": b'{"serial": 8, "a": "\0"}',
    "NUL before it": b"\0" + document(8),
    "NUL after it": document(8) + b"\0",
    "control character": b'{"serial": 8, "a": "\x1f"}',
    "unknown escape": b'{"serial": 8, "a": "\\x41"}',
}
NO_OBJECT = {name: name.encode() for name in ("[]", '"text"', "8", "null", "true", "[{}]")}
TOO_DEEP = {
    "arrays": b"[" * DEEP + b"]" * DEEP,
    "arrays, never closed": b"[" * DEEP,
    "arrays in an object": b'{"serial": 8, "a": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
}
BAD_HEAD = {
    "serial below zero": head(serial=-1),
    "serial over 63 bits": head(serial=2**63),
    "serial of 400 digits": head(serial=10**400),
    "serial of 5000 digits": b'{"serial": ' + b"9" * 5000 + b"}",
    "serial with a fraction": head(serial=8.5),
    "serial as a float": head(serial=8.0),
    "serial with an exponent": b'{"serial": 1e999}',
    "serial as text": head(serial="8"),
    "serial as a truth": head(serial=True),
    "serial as a list": head(serial=[8]),
    "lineage as a number": head(lineage=8),
    "lineage as an object": head(lineage={}),
    "lineage of 256 characters": head(lineage="x" * 256),
    "lineage of a megabyte": head(lineage="x" * 2**20),
    "lineage with NUL": head(lineage="a\0b"),
}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON.keys())
def test_non_json_is_rejected(untouched: Backend, body: bytes) -> None:
    message = assert_error(untouched.push(body), 400, "INVALID_DOCUMENT")
    assert message.startswith(
        ("The document is not a valid state: ", "The document is not valid UTF")
    )


@pytest.mark.parametrize("body", NO_OBJECT.values(), ids=NO_OBJECT.keys())
def test_non_object_is_rejected(untouched: Backend, body: bytes) -> None:
    message = assert_error(untouched.push(body), 400, "INVALID_DOCUMENT")
    assert "Expected `object`, got" in message


@pytest.mark.parametrize("body", TOO_DEEP.values(), ids=TOO_DEEP.keys())
def test_deep_nesting_is_rejected(untouched: Backend, body: bytes) -> None:
    assert_error(untouched.push(body), 400, "INVALID_DOCUMENT")


@pytest.mark.parametrize("body", BAD_HEAD.values(), ids=BAD_HEAD.keys())
def test_invalid_head_is_rejected(untouched: Backend, body: bytes) -> None:
    assert_error(untouched.push(body), 400, "INVALID_DOCUMENT")


@pytest.mark.parametrize("serial", [0, 2**63 - 1])
def test_outermost_serials_are_good(backend: Backend, serial: int) -> None:
    body = document(serial, lineage="ä" * 255)
    assert backend.push(body).status == 200
    assert backend.get().body == body
    (state,) = snapshot(backend.server, backend).states
    assert (state["serial"], state["lineage"]) == (serial, "ä" * 255)


def test_serial_cannot_follow_the_highest(backend: Backend) -> None:
    assert backend.push(document(2**63 - 1)).status == 200
    answer = backend.push(b'{"version": 4, "lineage": "lineage"}')
    assert (answer.status, answer.reason) == (409, "SERIAL_CONFLICT")


@pytest.mark.parametrize(
    "given",
    [
        content_md5(document(9)),  # another document's
        content_md5(document(8)).rstrip("="),
        "not base64",
        "8",
        base64.b64encode(b"x" * 15).decode(),
        base64.b64encode(b"x" * 17).decode(),
        "d41d8cd98f00b204e9800998ecf8427e",  # hexadecimal
        "",
        " ",
        "é",
    ],
)
def test_wrong_content_md5_is_rejected(untouched: Backend, given: str) -> None:
    answer = untouched.push(document(8), Content_MD5=given)
    assert_error(answer, 400, "CONTENT_MD5_MISMATCH")


def lock_body(**changes: Any) -> bytes:
    return json.dumps({**lock_info(str(uuid.uuid4())), **changes}).encode()


BAD_LOCKS = {
    "no JSON": b"hello",
    "no object": b"[]",
    "no ID": b"{}",
    "ID of another type": lock_body(ID=5),
    "null ID": lock_body(ID=None),
    "empty ID": lock_body(ID=""),
    "ID that is no UUID": lock_body(ID="my-lock"),
    "ID without hyphens": lock_body(ID=uuid.uuid4().hex),
    "ID in braces": lock_body(ID="{" + str(uuid.uuid4()) + "}"),
    "ID as a URN": lock_body(ID=uuid.uuid4().urn),
    "ID with a line end": lock_body(ID=str(uuid.uuid4()) + "\n"),
    "ID in other digits": lock_body(ID=str(uuid.uuid4())[:-1] + "٣"),
    "NUL": lock_body(Who="a\0b"),
    "Who of another type": lock_body(Who=["ada"]),
    "Created is no time": lock_body(Created="yesterday"),
    "Created without an offset": lock_body(Created="2026-11-21T06:50:11"),
    "invalid UTF-8": lock_body().replace(b"ada", b"\xff\xfe"),
    "100,000 brackets": b'{"ID":' + b"[" * DEEP,
    "NaN": lock_body(Info=float("nan")),
}


@pytest.mark.parametrize("door", [("LOCK", ""), ("POST", "/lock")], ids=["LOCK", "POST"])
@pytest.mark.parametrize("body", BAD_LOCKS.values(), ids=BAD_LOCKS.keys())
def test_bad_lock_info(untouched: Backend, door: tuple[str, str], body: bytes) -> None:
    method, suffix = door
    status, reason = (
        (413, "REQUEST_TOO_LARGE") if len(body) > 65_536 else (400, "INVALID_LOCK_INFO")
    )
    assert_error(untouched.send(method, body, suffix), status, reason)


@pytest.mark.parametrize("door", [("LOCK", ""), ("POST", "/lock")], ids=["LOCK", "POST"])
def test_empty_lock(untouched: Backend, door: tuple[str, str]) -> None:
    method, suffix = door
    assert_error(untouched.send(method, b"", suffix), 400, "INVALID_LOCK_INFO")
