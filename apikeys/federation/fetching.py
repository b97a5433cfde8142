"""HTTPS requests to issuers, with limits on size, time and addresses."""

from __future__ import annotations

import json
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from infra_service.lib.http_client.addresses import is_inside, is_public
from infra_service.lib.http_client.connection import Connection, parse_url
from infra_service.lib.http_client.errors import FetchError

if TYPE_CHECKING:
    from infra_service.lib.http_client.addresses import Address
    from infra_service.lib.http_client.deadline import Deadline

#: The maximum size of a response body. The largest key sets of the platforms have 10 KB.
MAX_BYTES: Final = 64 * 1024
#: The total time limit for name resolution, connections, handshakes and responses.
SECONDS: Final = 5.0


def fetch_json(url: str, ca: str, deadline: Deadline) -> Any:
    """Return the JSON at a URL. ``ca`` replaces the system's certificate authorities.

    Raises:
        FetchError: no valid response arrived before the deadline.
    """
    headers = {"Accept": "application/json", "User-Agent": "infra-service"}
    try:
        parse_url(url)
        response = Connection(url, context=_context(ca), check=_refuse_private).exchange(
            "GET", url, headers, deadline=deadline, limit=MAX_BYTES
        )
    except FetchError as error:
        raise FetchError(f"{url}: {error}") from error
    if response.status != HTTPStatus.OK:
        raise FetchError(f"{url} responds with the status {response.status}")
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError) as error:
        raise FetchError(f"{url} does not return JSON") from error


def _context(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError as error:
        raise FetchError("the configured CA certificates cannot be read") from error


def is_allowed(address: Address) -> bool:
    """Return whether the address is public or in ISSUER_NETWORKS, as required for issuers."""
    return is_inside(address, settings.ISSUER_NETWORKS) or is_public(address)


def _refuse_private(address: Address) -> None:
    if not is_allowed(address):
        raise FetchError("the name resolves to a private address that is not in ISSUER_NETWORKS")
