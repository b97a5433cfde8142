"""Messages of the Model Context Protocol: JSON-RPC 2.0 in a POST, of two eras.

The revision 2026-07-28 is stateless: each request carries its version in ``_meta`` and in headers.
The revisions of 2025 begin with ``initialize``; this service keeps no session for it.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STATELESS: Final = "2026-07-28"
#: With ``initialize``; the first is offered to a client of an unknown version.
WITH_INITIALIZE: Final = ("2025-11-25", "2025-06-18")
SUPPORTED: Final = (STATELESS, *WITH_INITIALIZE)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

_META: Final = "io.modelcontextprotocol/"
_MOST_OF_ID: Final = 100
_LARGEST_ID: Final = 2**53
_MARK: Final = ("=?base64?", "?=")


class MessageError(Exception):
    """An error of the protocol: its JSON-RPC code, a message, and further data."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request, or without an id a notification."""

    id: str | int | None
    method: str
    params: dict[str, Any]
    is_stateless: bool

    def result(self, fields: Mapping[str, Any], server: Mapping[str, str]) -> dict[str, Any]:
        """Return the response with a result."""
        result = dict(fields)
        if self.is_stateless:
            result |= {"resultType": "complete", "_meta": {f"{_META}serverInfo": server}}
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def status_of(self, error: MessageError) -> HTTPStatus:
        """Return the status of an error, which clients of 2025 expect to be 200."""
        if not self.is_stateless:
            return HTTPStatus.OK
        is_missing = error.code == METHOD_NOT_FOUND
        return HTTPStatus.NOT_FOUND if is_missing else HTTPStatus.BAD_REQUEST


def error_body(error: MessageError, message_id: str | int | None) -> dict[str, Any]:
    """Return the response with an error."""
    described: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        described["data"] = error.data
    # The protocol's schema has no null id.
    ids = {} if message_id is None else {"id": message_id}
    return {"jsonrpc": "2.0", **ids, "error": described}


def id_of(body: Any) -> str | int | None:
    """Return the id of a message if it is valid, or None."""
    found = body.get("id") if isinstance(body, dict) else None
    if isinstance(found, str):
        return found if len(found) <= _MOST_OF_ID else None
    is_integer = isinstance(found, int) and not isinstance(found, bool)
    return found if is_integer and abs(found) < _LARGEST_ID else None


def read_message(body: Any, headers: Mapping[str, str]) -> Message:
    """Return the message in a body.

    Raises:
        MessageError: an invalid message, an unsupported version, or headers that differ from it.
    """
    if not isinstance(body, dict):
        raise MessageError(INVALID_REQUEST, "Send one JSON-RPC message; batches are not supported.")
    method, params = body.get("method"), body.get("params", {})
    if body.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise MessageError(INVALID_REQUEST, 'Send a message with "jsonrpc": "2.0" and a method.')
    if "id" in body and id_of(body) is None:
        raise MessageError(
            INVALID_REQUEST,
            f"The id must be a string of at most {_MOST_OF_ID} characters or a 53-bit integer.",
        )
    if not isinstance(params, dict):
        raise MessageError(INVALID_PARAMS, "params must be an object.")
    message = Message(
        id=id_of(body),
        method=method,
        params=params,
        is_stateless=_is_stateless(params, headers.get("Mcp-Protocol-Version")),
    )
    if message.is_stateless and message.id is not None:
        _check_headers(message, headers)
    return message


def _is_stateless(params: dict[str, Any], header: str | None) -> bool:
    """Return whether the message is of a stateless version.

    Raises:
        MessageError: the version is missing or unsupported, or the header names another version.
    """
    meta = params.get("_meta", {})
    version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if version is None and header != STATELESS:
        if header is not None and header not in WITH_INITIALIZE:
            raise _unsupported(header)
        return False
    if not isinstance(version, str):
        raise MessageError(INVALID_PARAMS, f"params._meta needs {_META}protocolVersion, a string.")
    if version != header:
        raise MessageError(
            HEADER_MISMATCH, "The header MCP-Protocol-Version must repeat the version in _meta."
        )
    if version != STATELESS:
        raise _unsupported(version)
    if not isinstance(meta.get(f"{_META}clientCapabilities"), dict):
        raise MessageError(
            INVALID_PARAMS, f"params._meta needs {_META}clientCapabilities, an object."
        )
    return True


def _unsupported(version: str) -> MessageError:
    data = {"supported": SUPPORTED, "requested": version[:_MOST_OF_ID]}
    return MessageError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _check_headers(message: Message, headers: Mapping[str, str]) -> None:
    """Compare the headers by which a proxy may route with the message.

    Raises:
        MessageError: a header is missing or different.
    """
    expected = {"Mcp-Method": message.method}
    if message.method == "tools/call":
        expected["Mcp-Name"] = message.params.get("name")
    for name, value in expected.items():
        if _plain(headers.get(name, "")) != value:
            raise MessageError(
                HEADER_MISMATCH, f"The header {name} must repeat the message's value."
            )


def _plain(value: str) -> str:
    start, end = _MARK
    if not (value.startswith(start) and value.endswith(end)):
        return value
    try:
        return base64.b64decode(value[len(start) : -len(end)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
