"""HTTPS requests to issuers, with limits on size, time and addresses."""

from __future__ import annotations

import http.client
import json
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from infra_service.lib.http_client import connecting
from infra_service.lib.http_client.addresses import is_inside, is_public
from infra_service.lib.http_client.connecting import FetchError, parse_url, request

if TYPE_CHECKING:
    from infra_service.lib.http_client.addresses import Address

#: Bytes of a response body; the largest key sets of the platforms have 10 KB.
MAX_BYTES: Final = 64 * 1024
#: Seconds in total, for names, connections, handshakes and responses.
SECONDS: Final = 5.0


class Deadline(connecting.Deadline):
    """The deadline for an issuer's response."""

    def __init__(self, seconds: float = SECONDS) -> None:
        super().__init__(seconds)


def fetch_json(url: str, ca: str, deadline: Deadline) -> Any:
    """Return the JSON at a URL; verify its certificate with these authorities or the system's.

    Raises:
        FetchError: no valid response before the deadline.
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
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "infra-service",
    }
    with request(
        "GET",
        parse_url(url),
        headers,
        deadline=deadline,
        check=_refuse_private,
        context=_context(ca),
        most=MAX_BYTES,
    ) as response:
        if response.status != HTTPStatus.OK:
            raise FetchError(f"it answers with the status {response.status}")
        body = response.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise FetchError(f"the answer is longer than {MAX_BYTES} bytes")
    return body


def _context(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError as error:
        raise FetchError("the certificates that it is verified with cannot be read") from error


def is_allowed(address: Address) -> bool:
    """Return whether an issuer may have this address: public, or allowed in the settings."""
    return is_inside(address, settings.ISSUER_NETWORKS) or is_public(address)


def _refuse_private(address: Address) -> None:
    if not is_allowed(address):
        raise FetchError("the name leads to a private address, and ISSUER_NETWORKS has it not")
