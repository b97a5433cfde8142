"""Messages of the Model Context Protocol: JSON-RPC 2.0 in a POST, in two protocol styles.

The revision 2026-07-28 is stateless: each request carries its version in ``_meta`` and in headers.
The revisions of 2025 begin with ``initialize``. This service keeps no session after that call.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from rest_framework.exceptions import ParseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

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

PREFIX: Final = "io.modelcontextprotocol/"
_VERSION: Final = f"{PREFIX}protocolVersion"
_CAPABILITIES: Final = f"{PREFIX}clientCapabilities"
#: Integers are those that JSON numbers represent in all languages.
_Id = Annotated[str, Meta(max_length=100)] | Annotated[int, Meta(gt=-(2**53), lt=2**53)]


class MessageError(Exception):
    """An error of the protocol: its JSON-RPC code, a message, the status, and further data."""

    def __init__(self, code: int, message: str, status: int = 400, **data: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Message(msgspec.Struct):
    """A request, or a notification if it has no id."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] = {}
    id: _Id | UnsetType = UNSET

    @classmethod
    def read(cls, request: Request) -> Message:
        """Return the message in a body.

        Raises:
            MessageError: the body is not a message.
        """
        try:
            return msgspec.convert(request.data, cls)
        except ParseError as error:
            raise MessageError(PARSE_ERROR, str(error)) from error
        except msgspec.ValidationError as error:
            raise MessageError(INVALID_REQUEST, f"{str(error)[:300]}.") from error

    def reply(self, **result_or_error: Any) -> dict[str, Any]:
        """Return the response. The id of an invalid message is omitted, never null."""
        identified = {} if self.id is UNSET else {"id": self.id}
        return {"jsonrpc": "2.0", **identified, **result_or_error}

    @property
    def meta(self) -> Any:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def is_stateless(self) -> bool:
        return _VERSION in self.meta

    def validate(self, headers: Mapping[str, str]) -> None:
        """Check the version of the message, and the routing headers of a stateless message.

        Raises:
            MessageError: the version is not supported, or the message differs from its headers.
        """
        version = headers.get("MCP-Protocol-Version")
        if not self.is_stateless and version in (None, *WITH_INITIALIZE):
            return
        fields = {
            "MCP-Protocol-Version": self.meta.get(_VERSION, version),
            "Mcp-Method": self.method,
        }
        if self.method == "tools/call":
            fields["Mcp-Name"] = self.params.get("name", "")
        for name, value in fields.items():
            in_base64 = f"=?base64?{b64encode(str(value).encode()).decode()}?="
            if headers.get(name) not in (value, in_base64):
                raise MessageError(
                    HEADER_MISMATCH, f"The {name} header does not match the message."
                )
        if version != STATELESS:
            data: Any = {"supported": SUPPORTED, "requested": str(version)[:100]}
            raise MessageError(UNSUPPORTED_VERSION, "Unsupported protocol version", **data)
        if not (self.is_stateless and isinstance(self.meta.get(_CAPABILITIES), dict)):
            text = f"params._meta needs {_VERSION} and {_CAPABILITIES}."
            raise MessageError(INVALID_PARAMS, text)
