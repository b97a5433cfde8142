"""One attempt: a POST to an address that somebody named, within 15 seconds, and not inside."""

from __future__ import annotations

import datetime as dt
import email.utils
import functools
import http.client
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from django.conf import settings
from django.utils import timezone

from infra_service import __version__
from infra_service.outgoing.addresses import is_inside, is_public
from infra_service.outgoing.connecting import Deadline, FetchError, parse_url, request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra_service.outgoing.addresses import Address

#: For all of an attempt: the name, the connection, the handshake, the message and the answer.
SECONDS: Final = 15.0
SCHEMES: Final = ("https", "http")


class Answer(NamedTuple):
    """What came back: the status of an HTTP answer, or why there was none."""

    status: int | None
    error: str = ""
    #: When it asked to be asked again.
    retry_at: dt.datetime | None = None

    @property
    def is_success(self) -> bool:
        """Only 2xx: who is led elsewhere would be told of what is ours."""
        return self.status is not None and HTTPStatus(200) <= self.status < HTTPStatus(300)


def post(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """Send the body; never raise for what the address, or who is there, has done."""
    try:
        return _post(url, headers, body, Deadline(SECONDS))
    except FetchError as error:
        return Answer(None, str(error))
    except TimeoutError:
        return Answer(None, "the answer took too long")
    except (OSError, http.client.HTTPException) as error:
        # Not its text, which may hold what a server has sent.
        return Answer(None, f"there was no answer: {type(error).__name__}")


def _post(url: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Answer:
    parts = parse_url(url, SCHEMES)
    is_secure = parts.scheme == "https"
    lines = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "User-Agent": f"infra-service/{__version__}",
        **headers,
    }
    # The answer counts by its head; its body is not read.
    with request(
        "POST",
        parts,
        lines,
        body,
        deadline=deadline,
        check=_refuse_private if is_secure else _refuse_public,
        context=_context() if is_secure else None,
        most=0,
    ) as response:
        return Answer(response.status, retry_at=_moment(response.getheader("Retry-After")))


def _moment(retry_after: str | None) -> dt.datetime | None:
    """Return the moment that the header names, by seconds or as a date (RFC 9110 §10.2.3)."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdecimal():
        return timezone.now() + dt.timedelta(seconds=int(text[:6]))
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def _refuse_private(address: Address) -> None:
    if not (is_inside(address, settings.WEBHOOK_NETWORKS) or is_public(address)):
        raise FetchError("the name leads to a private address, and WEBHOOK_NETWORKS has it not")


def _refuse_public(address: Address) -> None:
    """Allow plain HTTP where an operator has said that it stays inside."""
    if not is_inside(address, settings.WEBHOOK_NETWORKS):
        raise FetchError("plain http is only for addresses of WEBHOOK_NETWORKS")


@functools.cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()
