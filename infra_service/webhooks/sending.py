"""Send a message: a POST to a user's URL within 15 seconds, only to allowed addresses."""

from __future__ import annotations

import datetime as dt
import functools
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from django.conf import settings
from django.utils import timezone
from django.utils.http import parse_http_date_safe

from infra_service import __version__
from infra_service.lib.http_client.addresses import (
    LOOPBACK,
    is_inside,
    is_localhost,
    is_public,
    parse_literal,
)
from infra_service.lib.http_client.connection import Connection, parse_url
from infra_service.lib.http_client.deadline import Deadline, retry_after_seconds
from infra_service.lib.http_client.errors import FetchError
from infra_service.webhooks.event_types import TEST
from infra_service.webhooks.messages import message
from infra_service.webhooks.secrets import SecretUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra_service.lib.http_client.addresses import Address
    from infra_service.webhooks.models import Delivery
    from infra_service.webhooks.subscriptions import Reach

log = structlog.get_logger("infra_service.webhooks")

#: Seconds for an attempt in total: DNS, connection, TLS handshake, request and response.
SECONDS: Final = 15.0
SCHEMES: Final = ("https", "http")
#: The maximum accepted Retry-After, in seconds. queue.py limits the time to a day.
_LONGEST_PAUSE: Final = 10**6
_PLAIN: Final = "plain http is allowed only for addresses in WEBHOOK_NETWORKS"


class Outcome(NamedTuple):
    """The outcome of an attempt: the HTTP status, or the reason why there is no response."""

    status: int | None
    error: str = ""
    #: The time in ``Retry-After``.
    retry_at: dt.datetime | None = None
    #: Whether nothing was sent, and the delivery fails permanently.
    is_withheld: bool = False

    @property
    def is_success(self) -> bool:
        """Return whether the status is 2xx. A redirect could disclose events to another host."""
        return self.status is not None and HTTPStatus(200) <= self.status < HTTPStatus(300)


def attempt(delivery: Delivery, reach: Reach) -> Outcome:
    """Send a delivery once if its endpoint may still receive it.

    Every exception becomes a failed attempt.
    """
    endpoint, event = reach.endpoint, delivery.event
    try:
        if event.type != TEST and not reach.has(event):
            return Outcome(
                None, "the endpoint is no longer allowed to receive this event", is_withheld=True
            )
        headers, body = message(endpoint, event)
        return post(endpoint.destination(), headers, body)
    except SecretUnreadableError as error:
        return Outcome(None, str(error))  # another process may have the key
    except Exception as error:
        log.exception("delivery_failed", webhook=str(endpoint.pk), delivery=delivery.pk)
        return Outcome(None, f"the attempt failed: {type(error).__name__}")


def post(url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
    """Send the body. Return errors of the network or the receiver as an outcome."""
    lines = {
        "Content-Type": "application/json",
        "User-Agent": f"infra-service/{__version__}",
        **headers,
    }
    try:
        check = _check_for(is_secure=parse_url(url, SCHEMES).scheme == "https")
        # The response head determines the outcome. The body is not read.
        response = Connection(url, context=_context(), check=check).exchange(
            "POST", url, lines, body, deadline=Deadline(SECONDS), limit=None
        )
    except FetchError as error:
        return Outcome(None, str(error))
    return Outcome(response.status, retry_at=_moment(response.headers.get("Retry-After")))


def _moment(retry_after: str | None) -> dt.datetime | None:
    """Return the time in the header, from seconds or a date (RFC 9110 §10.2.3)."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if (seconds := retry_after_seconds(text, _LONGEST_PAUSE)) is not None:
        return timezone.now() + dt.timedelta(seconds=seconds)
    seconds_since_1970 = parse_http_date_safe(text)
    if seconds_since_1970 is None:
        return None
    return dt.datetime.fromtimestamp(seconds_since_1970, dt.UTC)


def refuse_undeliverable(url: str) -> None:
    """Reject a URL to which nothing can be sent with the current settings.

    An address in the URL is compared with the settings. A name is not resolved here: each
    connection resolves it and checks the result.

    Raises:
        FetchError: the URL is malformed, or no connection to it would be allowed.
    """
    parts = parse_url(url, SCHEMES)
    is_secure = parts.scheme == "https"
    host = (parts.hostname or "").rstrip(".")
    address = LOOPBACK if is_localhost(host) else parse_literal(host)
    if address is not None:
        _check_for(is_secure=is_secure)(address)
    elif not is_secure and not settings.WEBHOOK_NETWORKS:
        raise FetchError(_PLAIN)


def _check_for(*, is_secure: bool) -> Callable[[Address], None]:
    return _refuse_private if is_secure else _refuse_public


def _refuse_private(address: Address) -> None:
    if not (is_inside(address, settings.WEBHOOK_NETWORKS) or is_public(address)):
        raise FetchError(
            "the name resolves to a private address, and WEBHOOK_NETWORKS does not include it"
        )


def _refuse_public(address: Address) -> None:
    """Reject plain HTTP to hosts that the operator has not declared internal."""
    if not is_inside(address, settings.WEBHOOK_NETWORKS):
        raise FetchError(_PLAIN)


@functools.cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()
