"""Requests of an agent to the service, over HTTPS."""

from __future__ import annotations

import contextlib
import ssl
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from infra_service.lib.error_text import reason_of
from infra_service.lib.http_client.addresses import is_protected
from infra_service.lib.http_client.connection import Connection
from infra_service.lib.http_client.deadline import Deadline, retry_after_seconds
from infra_service.lib.http_client.errors import FetchError
from workloads.collector.destinations import NotReportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra_service.lib.http_client.connection import Response

#: The maximum seconds without a byte, and in total. The service applies the largest report in two
#: seconds.
_IDLE_TIMEOUT: Final = 30.0
_WITHIN: Final = 120.0
# The maximum bytes of a response. The service sends a few hundred.
_MOST_BYTES: Final = 64 * 1024
_MOST_TEXT: Final = 300
_FORM: Final = "the service's address must have the form https://host"


class AddressError(Exception):
    """The address or the CA file is unusable. The message states the reason."""


class Answer(msgspec.Struct, frozen=True):
    """A response. ``reason`` is the error code in the service's format or in OAuth's."""

    status: int
    body: bytes
    reason: str = ""
    message: str = ""
    retry_after: float = 0.0

    def __str__(self) -> str:
        text = " ".join(filter(None, (str(self.status), self.reason)))
        return f"{text}: {self.message}" if self.message else text


class ServiceConnection:
    """A client that sends one request at a time, over a new connection, never through a proxy.

    Redirects are refused, because they would leak a token. `ca_file` contains the certificate
    authorities to trust instead of the system's. It is reloaded after a certificate is refused.
    """

    def __init__(self, url: str, ca_file: str | None = None) -> None:
        self._url, self._ca_file = _base_url(url), ca_file
        self._context = _context(ca_file)
        self._open: Connection | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a request, and return the response with any status.

        Raises:
            NotReportedError: no response arrived in time.
        """
        with self._lock:
            if self._stopped:
                raise NotReportedError("the collector stopped before it sent the request")
            self._open = connection = Connection(self._url, context=self._context)
        sent = {"User-Agent": "infra-service", **headers}
        deadline = Deadline(_WITHIN, _IDLE_TIMEOUT)
        try:
            response = connection.exchange(
                method, self._url + path, sent, body, deadline=deadline, limit=_MOST_BYTES
            )
            return _answer(response)
        except FetchError as error:
            cause = error.__cause__ or error
            self._mend(cause)
            # Use the text of the cause, which describes the error of the connection.
            text = f"{type(cause).__name__}: {reason_of(cause)}"[:_MOST_TEXT]
            raise NotReportedError(f"the service does not respond ({text})") from error
        except ValueError as error:  # its text may quote the token
            raise NotReportedError(
                f"the request or its response failed ({type(error).__name__})"
            ) from None
        finally:
            with self._lock:
                self._open = None

    def stop(self) -> None:
        """Abort the current request, and refuse new requests."""
        with self._lock:
            self._stopped = True
            if self._open is not None:
                self._open.shut_down()

    def _mend(self, error: BaseException) -> None:
        """Reload the certificate authorities after a refused certificate: they may have rotated.

        If the file cannot be read, keep the previous authorities.
        """
        if self._ca_file and isinstance(error, ssl.SSLError):
            with contextlib.suppress(AddressError):
                self._context = _context(self._ca_file)


def _base_url(url: str) -> str:
    """Return the address of the service without a trailing slash.

    Raises:
        AddressError: the address is invalid, or would send a token in plain text. The message does
            not quote the address, which may contain a password.
    """
    if not (is_protected(url) and url.isascii() and url.isprintable() and " " not in url):
        raise AddressError(_FORM)
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise AddressError(_FORM)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _context(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise AddressError(
            f"{ca_file} contains no certificate authorities: {reason_of(error)}"
        ) from error


def _answer(response: Response) -> Answer:
    pause = retry_after_seconds(response.headers.get("Retry-After")) or 0.0
    body = response.body
    reason, message = ("", "") if response.status == HTTPStatus.OK else _refusal(body)
    return Answer(response.status, body, reason, message, pause)


def _refusal(body: bytes) -> tuple[str, str]:
    """Return the reason and the message of an error; both are empty if a proxy responded."""
    try:
        text: Any = msgspec.json.decode(body)
        error = text["error"]
        if isinstance(error, str):  # OAuth's form
            return error[:_MOST_TEXT], str(text.get("error_description", ""))[:_MOST_TEXT]
        return str(error["details"][0]["reason"])[:_MOST_TEXT], str(error["message"])[:_MOST_TEXT]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return "", ""
