"""What is read from an issuer's addresses: over HTTPS, little, soon, and not from inside."""

from __future__ import annotations

import http.client
import json
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from infra_service.outgoing import connecting
from infra_service.outgoing.addresses import is_inside, is_public
from infra_service.outgoing.connecting import (
    MAX_HEADER_BYTES,
    FetchError,
    Limited,
    connect,
    parse_url,
    target_of,
)

if TYPE_CHECKING:
    import socket

    from infra_service.outgoing.addresses import Address

#: Of an answer's body; the largest key sets of the platforms have 10 KB.
MAX_BYTES: Final = 64 * 1024
#: For all of it: names, connections, handshakes and answers.
SECONDS: Final = 5.0
_HTTPS: Final = 443


class Deadline(connecting.Deadline):
    """The moment by which an issuer must have answered."""

    def __init__(self, seconds: float = SECONDS) -> None:
        super().__init__(seconds)


def fetch_json(url: str, ca: str, deadline: Deadline) -> Any:
    """Return the JSON at an address whose certificate these authorities, or the system's, signed.

    Raises:
        FetchError: there is none, or not in time.
    """
    try:
        return json.loads(_fetch(url, ca, deadline))
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(f"{url} cannot be read: {error!r}") from error
    except (ValueError, RecursionError) as error:
        raise FetchError(f"{url} does not answer with JSON") from error
    except FetchError as error:
        raise FetchError(f"{url}: {error}") from error


def _fetch(url: str, ca: str, deadline: Deadline) -> bytes:
    parts = parse_url(url)
    host = parts.hostname or ""
    lines = (
        f"GET {target_of(parts)} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "User-Agent: infra-service",
        "Connection: close",
        "\r\n",
    )
    context = _context(ca)
    with connect(host, parts.port or _HTTPS, deadline, _refuse_private) as plain:
        plain.settimeout(deadline.left())
        with context.wrap_socket(plain, server_hostname=host) as connection:
            connection.settimeout(deadline.left())
            connection.sendall("\r\n".join(lines).encode("ascii"))
            return _read(connection, deadline)


def _context(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError as error:
        raise FetchError("the certificates that it is verified with cannot be read") from error


def is_allowed(address: Address) -> bool:
    """Whether issuers may have this address: a public one, or one that the settings name."""
    return is_inside(address, settings.ISSUER_NETWORKS) or is_public(address)


def _refuse_private(address: Address) -> None:
    if not is_allowed(address):
        raise FetchError("the name leads to a private address, and ISSUER_NETWORKS has it not")


def _read(connection: socket.socket, deadline: Deadline) -> bytes:
    source: Any = Limited(connection, deadline, MAX_BYTES + MAX_HEADER_BYTES)
    response = http.client.HTTPResponse(source, method="GET")
    response.begin()
    if response.status != HTTPStatus.OK:
        raise FetchError(f"it answers with the status {response.status}")
    body = response.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise FetchError(f"the answer is longer than {MAX_BYTES} bytes")
    return body
