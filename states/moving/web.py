"""A client for the web APIs of import sources, with HTTPS, a token, retries and limits."""

from __future__ import annotations

import json
import ssl
import time
import weakref
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from infra_service.lib.error_text import reason_of
from infra_service.lib.http_client import errors
from infra_service.lib.http_client.addresses import is_protected
from infra_service.lib.http_client.connection import Connection, origin_of
from infra_service.lib.http_client.deadline import Deadline, retry_after_seconds
from states.moving.sources import SourceError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

    from infra_service.lib.http_client.connection import Response

#: The timeout of a connection, and of each wait for the next bytes.
_IDLE_SECONDS: Final = 60
#: The timeout of a whole response. Without it, a service could send single bytes forever.
_ANSWER_SECONDS: Final = 15 * 60
#: The maximum size of a JSON response. A page of a list has a few hundred kilobytes.
MOST_JSON_BYTES: Final = 32 * 1024 * 1024
_ATTEMPTS: Final = 5
#: The longest pause that a service can request with Retry-After.
_LONGEST_PAUSE_SECONDS: Final = 60
_PASSING: Final = frozenset({
    HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
})  # fmt: skip
_REDIRECTS: Final = frozenset({
    HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER,
    HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT,
})  # fmt: skip
_MOST_REDIRECTS: Final = 3


class RefusedError(SourceError):
    """A response with an error status."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class WebClient:
    """A client of a single service. It sends its token only to this service."""

    def __init__(
        self,
        base: str,
        token: str,
        *,
        named_by: str,
        token_named_by: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        require_https(base, named_by)
        self.base = base.rstrip("/")
        self._token = token.strip()
        if not self._token or not self._token.isascii() or not self._token.isprintable():
            raise SourceError(f"The token for {self.base} is missing. Set {token_named_by}.")
        self._token_named_by = token_named_by
        self._sleep = sleep
        self._connections: dict[str, Connection] = {}
        weakref.finalize(self, _close_all, self._connections)

    def json(self, url: str, query: Any = None) -> Any:
        """Return the JSON at a URL, which may be relative to the base.

        With ``query``, the request is a POST of the query as JSON.

        Raises:
            SourceError: the request failed (see ``request``), or the response is not JSON.
        """
        body = None if query is None else json.dumps(query).encode()
        return self._parsed(self.request("GET" if body is None else "POST", url, body))

    def page(self, url: str) -> tuple[Any, Message]:
        """Return the JSON at a URL, and the headers, which may contain a link to the next page.

        Raises:
            SourceError: see ``json``.
        """
        answer = self.request("GET", url)
        return self._parsed(answer), answer.headers

    def exists(self, url: str) -> bool:
        """Return whether an object with this URL exists.

        Raises:
            SourceError: see ``request``.
        """
        try:
            self.request("HEAD", url)
        except RefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    def request(
        self, method: str, url: str, body: bytes | None = None, limit: int = MOST_JSON_BYTES
    ) -> Response:
        """Return a successful response. Retry temporary errors a few times.

        Raises:
            TooLargeError: the response exceeds ``limit``.
            RefusedError: the service refuses the request.
            SourceError: the service does not respond.
        """
        address = self._joined(f"{self.base}/", url, "a URL in its response")
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._patiently(method, address, body, limit)
            if answer.status not in _REDIRECTS:
                break
            # Downloads may be on another host. Their URL itself grants access.
            address = self._joined(address, answer.headers.get("Location", ""), "a redirect")
        if not answer.is_success:
            raise self._refusal(answer.status)
        return answer

    def _joined(self, base: str, url: str, named_by: str) -> str:
        """Return the absolute URL for a URL from the service, which may be relative.

        Raises:
            SourceError: the URL is invalid, or unencrypted.
        """
        named_by = f"{self.base}: {named_by}"
        try:
            address = urljoin(base, url)
        except ValueError as error:
            raise SourceError(f"{named_by} is not a valid URL.") from error
        # http.client rejects non-ASCII and unprintable characters with several exceptions.
        if not address.isascii() or not address.isprintable() or " " in address:
            raise SourceError(f"{named_by} is not a valid URL.")
        require_https(address, named_by)
        return address

    @contextmanager
    def understanding(self) -> Iterator[None]:
        """Convert an error about the form of a response into a SourceError.

        Raises:
            SourceError: the response has an unexpected form.
        """
        try:
            yield
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            detail = f"{type(error).__name__}: {error}"
            raise SourceError(
                f"{self.base} returned a response in an unknown format ({detail})."
            ) from error

    def _parsed(self, answer: Response) -> Any:
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{self.base} returned a response that is not JSON.") from error

    def _patiently(self, method: str, address: str, body: bytes | None, limit: int) -> Response:
        for attempt in range(_ATTEMPTS):
            is_last = attempt == _ATTEMPTS - 1
            try:
                answer = self._once(method, address, body, limit)
            except errors.TooLargeError as error:
                raise TooLargeError(error.size_bytes, error.limit) from error
            except errors.FetchError as error:
                cause = error.__cause__ or error
                if isinstance(cause, ssl.SSLCertVerificationError):
                    raise SourceError(
                        f"The certificate of {origin_of(address)} is not trusted. Add the "
                        "certificate authority to the file in SSL_CERT_FILE."
                    ) from error
                if is_last:
                    # The text of other errors may contain a URL that grants access.
                    is_of_system = isinstance(cause, OSError)
                    reason = reason_of(cause) if is_of_system else type(cause).__name__
                    proxy, _ = _proxy_of(address)
                    way = " through the proxy {}:{}".format(*proxy) if proxy else ""
                    raise SourceError(
                        f"{origin_of(address)} does not respond{way} ({reason})."
                    ) from error
                pause = 2.0**attempt
            else:
                if answer.status not in _PASSING or is_last:
                    return answer
                requested = retry_after_seconds(
                    answer.headers.get("Retry-After"), _LONGEST_PAUSE_SECONDS
                )
                pause = 2.0**attempt if requested is None else requested
            self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, address: str, body: bytes | None, limit: int) -> Response:
        origin = origin_of(address)
        headers = {"User-Agent": "infra-service"}
        if origin == origin_of(self.base):
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        if origin not in self._connections:
            proxy, login = _proxy_of(address)
            self._connections[origin] = Connection(
                address, proxy=proxy, proxy_login=login, keep=True
            )
        deadline = Deadline(_ANSWER_SECONDS, _IDLE_SECONDS)
        return self._connections[origin].exchange(
            method, address, headers, body, deadline=deadline, limit=limit
        )

    def _refusal(self, status: int) -> RefusedError:
        name = self._token_named_by
        sentences: dict[int, str] = {
            HTTPStatus.UNAUTHORIZED: f"{self.base} does not accept the token. Set {name}.",
            HTTPStatus.FORBIDDEN: (
                f"{self.base} refuses the request. The token in {name} lacks the permission."
            ),
            HTTPStatus.NOT_FOUND: (
                f"{self.base} has no such object, or the token in {name} cannot access it."
            ),
        }
        otherwise = f"{self.base} responded with {status}. Try again later."
        return RefusedError(sentences.get(status, otherwise), status)


def _proxy_of(address: str) -> tuple[tuple[str, int] | None, str]:
    """Return the host and port of the environment's proxy, and its ``user:password``, if any.

    Plain HTTP, which only this machine may use, needs no proxy.

    Raises:
        SourceError: the address of the proxy is invalid.
    """
    parts = urlsplit(address)
    is_direct = parts.scheme == "http" or proxy_bypass(parts.hostname or "")
    proxy = "" if is_direct else getproxies().get("https", "")
    if not proxy:
        return None, ""
    try:
        way = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        place = (way.hostname or "", way.port or 443)
    except ValueError as error:
        raise SourceError("HTTPS_PROXY must have the form http://host:port.") from error
    return place, unquote(way.netloc.rpartition("@")[0])


def _close_all(connections: dict[str, Connection]) -> None:
    for connection in connections.values():
        connection.close()


def require_https(url: str, named_by: str) -> None:
    """Refuse a URL that would send a token or a state over the network unencrypted.

    Raises:
        SourceError: the URL does not use HTTPS, and is not on this machine.
    """
    if not is_protected(url):
        # The message omits the URL, because it may contain a password.
        raise SourceError(f"{named_by} must have the form https://host.")
