"""Messages of the Model Context Protocol: JSON-RPC 2.0 in a POST, of two eras.

The revision 2026-07-28 is stateless: each request carries its version in ``_meta`` and in headers.
The revisions of 2025 begin with ``initialize``; this service keeps no session for it.
"""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

_PREFIX: Final = "io.modelcontextprotocol/"
_MOST_OF_ID: Final = 100
_LARGEST_ID: Final = 2**53


class MessageError(Exception):
    """An error of the protocol: its JSON-RPC code, a message, and further data."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}

    def body(self, message_id: str | int | None) -> dict[str, Any]:
        """Return the response; the protocol's schema has no null id."""
        ids = {} if message_id is None else {"id": message_id}
        return {"jsonrpc": "2.0", **ids, "error": self.error}


class Message(NamedTuple):
    """A request, or without an id a notification."""

    id: str | int | None
    method: str
    params: dict[str, Any]
    is_stateless: bool

    def result(self, fields: Mapping[str, Any], server: Mapping[str, str]) -> dict[str, Any]:
        """Return the response with a result."""
        named = {"resultType": "complete", "_meta": {f"{_PREFIX}serverInfo": server}}
        result = {**fields, **(named if self.is_stateless else {})}
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def status_of(self, error: MessageError) -> HTTPStatus:
        """Return the status of an error, which clients of 2025 expect to be 200."""
        if not self.is_stateless:
            return HTTPStatus.OK
        is_missing = error.error["code"] == METHOD_NOT_FOUND
        return HTTPStatus.NOT_FOUND if is_missing else HTTPStatus.BAD_REQUEST


def id_of(body: Any) -> str | int | None:
    """Return the id of a message if it is valid, or None."""
    found = body.get("id") if isinstance(body, dict) else None
    if isinstance(found, str) and len(found) <= _MOST_OF_ID:
        return found
    return found if type(found) is int and abs(found) < _LARGEST_ID else None


def read_message(body: Any, headers: Mapping[str, str]) -> Message:
    """Return the message in a body.

    Raises:
        MessageError: an invalid message, an unsupported version, or headers that differ from it.
    """
    message = body if isinstance(body, dict) else {}
    method, params = message.get("method"), message.get("params", {})
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise MessageError(INVALID_REQUEST, "Send one JSON-RPC 2.0 request or notification.")
    if "id" in message and id_of(message) is None:
        limits = f"a string of at most {_MOST_OF_ID} characters or a 53-bit integer"
        raise MessageError(INVALID_REQUEST, f"The id must be {limits}.")
    if not isinstance(params, dict):
        raise MessageError(INVALID_PARAMS, "params must be an object.")
    header = headers.get("Mcp-Protocol-Version")
    is_stateless = _is_stateless(params.get("_meta"), header)
    read = Message(id_of(message), method, params, is_stateless)
    if is_stateless and read.id is not None:
        _check_headers(read, headers)
    return read


def _is_stateless(meta: Any, header: str | None) -> bool:
    """Return whether the message is of the stateless version.

    Raises:
        MessageError: the version is missing or unsupported, or the header names another version.
    """
    fields = meta if isinstance(meta, dict) else {}
    version = fields.get(f"{_PREFIX}protocolVersion")
    if version is None and (header is None or header in WITH_INITIALIZE):
        return False
    if version is not None and version != header:
        raise MessageError(
            HEADER_MISMATCH, "MCP-Protocol-Version differs from the version in _meta."
        )
    if header != STATELESS:
        data = {"supported": SUPPORTED, "requested": str(header)[:_MOST_OF_ID]}
        raise MessageError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if version is None or not isinstance(fields.get(f"{_PREFIX}clientCapabilities"), dict):
        names = f"{_PREFIX}protocolVersion and {_PREFIX}clientCapabilities"
        raise MessageError(INVALID_PARAMS, f"params._meta needs {names}.")
    return True


def _check_headers(message: Message, headers: Mapping[str, str]) -> None:
    """Compare the headers by which a proxy may route with the message.

    Raises:
        MessageError: a header is missing or different.
    """
    expected = {"Mcp-Method": message.method}
    if message.method == "tools/call":
        expected["Mcp-Name"] = message.params.get("name", "")
    for name, value in expected.items():
        if _decoded(headers.get(name)) != value:
            raise MessageError(HEADER_MISMATCH, f"The header {name} differs from the message.")


def _decoded(value: str | None) -> str | None:
    """Return the value of a header, which may be in base64."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None
