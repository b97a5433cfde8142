"""Requests to an API server, with the client of the `kubernetes` package or of `account`.

The package handles configuration, authentication, exec plugins and TLS. Credentials that expire (a
token file, a token in a kubeconfig, a client certificate) are reloaded after a 401.
"""

from __future__ import annotations

import contextlib
import threading
import time
from http import HTTPStatus
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec

from infra_service.lib.error_text import reason_of
from infra_service.lib.http_client.deadline import retry_after_seconds
from workloads.collector.clock import ServerClock
from workloads.collector.errors import (
    ClosedError,
    ExpiredError,
    InvalidAnswerError,
    RefusedError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kubernetes.client import ApiClient

    from workloads.collector.account import AccountApi

_CONNECT_TIMEOUT: Final = 10.0
# The maximum bytes read of an error's body.
_ERROR_BYTES: Final = 64 * 1024
_AUTHORIZATION: Final = "authorization"


class Request(msgspec.Struct, frozen=True):
    """A GET request. `idle_timeout` limits the seconds without a byte, and `within` the total.

    `aggregated` means that the API server forwards the request to another server, which has its
    own clock.
    """

    path: str
    parameters: dict[str, str]
    accept: str
    idle_timeout: float
    within: float | None = None
    encoding: str = "gzip"
    aggregated: bool = False


class Connection:
    """A thread-safe connection to an API server. `close` aborts open requests.

    Each call of `load` reloads the credentials. `failures` contains the exceptions of the
    `kubernetes` package and its dependencies. This module does not import the package, because it
    is an optional extra.
    """

    def __init__(
        self, load: Callable[[], ApiClient | AccountApi], failures: tuple[type[Exception], ...]
    ) -> None:
        self._load = load
        self._api = load()
        self._failures: tuple[type[Exception], ...] = (*failures, OSError, InvalidAnswerError)
        self._open: set[Any] = set()
        self._waiting: set[SimpleQueue[Any]] = set()
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._closed = False
        self.clock = ServerClock()

    @contextlib.contextmanager
    def answer(self, request: Request) -> Iterator[Any]:
        """Yield the response if its status is 200.

        Raises:
            RefusedError, UnreachableError: the status is not 200, or the response is missing or
            incomplete.
        """
        response = timer = None
        cut = threading.Event()
        started = time.monotonic()
        try:
            response = self._ask(request)
            if request.within is not None:
                left = max(started + request.within - time.monotonic(), 0.0)
                timer = threading.Timer(left, self._cut_off, [response, cut])
                timer.start()
            if response.status != HTTPStatus.OK:
                raise self._refused(response)
            if not request.aggregated:
                self.clock.learn(response.headers, time.monotonic() - started)
            yield response
        except self._failures as error:
            # Python continues to read from a connection that was shut down, even without TLS. Such
            # bytes are not a response, so any resulting error is a consequence of the shutdown.
            if self._closed:
                raise ClosedError(
                    f"{request.path}: the client stopped during the request"
                ) from error
            if cut.is_set():
                reason = f"took longer than {request.within:.0f} s"
            elif isinstance(error, InvalidAnswerError):
                raise
            else:
                reason = f"{type(error).__name__}: {reason_of(error)}"
            raise UnreachableError(f"{request.path}: {reason}") from error
        finally:
            if timer is not None:
                timer.cancel()
            if response is not None:
                self._forget(response)

    def close(self) -> None:
        """Abort all open requests in any thread, and refuse new requests."""
        with self._lock:
            self._closed = True
            for response in self._open:
                _shut_down(response)
            for answers in self._waiting:
                answers.put(OSError("closed"))

    @staticmethod
    def _cut_off(response: Any, cut: threading.Event) -> None:
        cut.set()
        _shut_down(response)

    def _ask(self, request: Request) -> Any:
        """Return the response as soon as it begins. Fail as soon as `close` is called.

        A separate thread waits for the response, because nothing can interrupt a token plugin, a
        name lookup or a connection attempt.
        """
        answers: SimpleQueue[Any] = SimpleQueue()

        def send() -> None:
            try:
                response = self._authenticated(request)
            except ValueError:  # the exception's text would contain the token
                answers.put(OSError("the address or the credentials contain invalid characters"))
            except BaseException as error:  # noqa: BLE001 - raised by the waiting thread
                answers.put(error)
            else:
                self._put(answers, response)

        with self._lock:
            if self._closed:
                raise OSError("closed")
            self._waiting.add(answers)
        threading.Thread(target=send, name=f"ask-{request.path}", daemon=True).start()
        try:
            found = answers.get(timeout=request.within)
        except Empty:
            found = TimeoutError(f"no response within {request.within:.0f} s")
        with self._lock:
            self._waiting.discard(answers)
        if isinstance(found, BaseException):
            raise found
        return found

    def _authenticated(self, request: Request) -> Any:
        """Send a request; after a 401, repeat it with the current credentials."""
        api = self._api
        response, used = self._send(api, request)
        if response.status != HTTPStatus.UNAUTHORIZED:
            return response
        try:
            with self._renewing:
                if self._api is api:
                    self._api = self._load()
            api = self._api
            if used and self._headers(api, request).get(_AUTHORIZATION) == used:
                return response  # the token has not changed
        except BaseException:
            response.close()
            raise
        response.close()
        return self._send(api, request)[0]

    def _send(self, api: ApiClient | AccountApi, request: Request) -> tuple[Any, str | None]:
        """Send a request. Return the response and the request's Authorization header."""
        headers = self._headers(api, request)
        query = f"?{urlencode(request.parameters)}" if request.parameters else ""
        url = f"{api.configuration.host.rstrip('/')}{request.path}{query}"

        def call() -> Any:
            timeouts = _CONNECT_TIMEOUT, request.idle_timeout
            return api.call_api("GET", url, headers, _request_timeout=timeouts).response

        try:
            response = call()
        except self._failures as error:
            # The server may close an idle connection just as the client sends the next request.
            # Repeat a safe request once, on a new connection (RFC 9112, section 9.3.1).
            if not any(isinstance(cause, ConnectionError) for cause in error.args):
                raise
            response = call()
        return response, headers.get(_AUTHORIZATION)

    @staticmethod
    def _headers(api: ApiClient | AccountApi, request: Request) -> dict[str, str]:
        headers = {
            "Accept": request.accept,
            "Accept-Encoding": request.encoding,
            "User-Agent": "infra-service",
        }
        # Renew tokens with a known expiry: the tokens of a service account or of an exec plugin.
        api.update_params_for_auth(headers, [], ["BearerToken"], request.path, "GET", None)
        # A token file may end with a line break, which a header cannot contain.
        return {name: value.strip() for name, value in headers.items()}

    def _put(self, answers: SimpleQueue[Any], response: Any) -> None:
        with self._lock:
            if answers in self._waiting and not self._closed:
                self._open.add(response)
                answers.put(response)
            else:  # the waiting thread has timed out
                response.close()

    def _forget(self, response: Any) -> None:
        with self._lock:
            self._open.discard(response)
        # A fully read response has returned its connection; otherwise the connection is unusable.
        response.close()

    @staticmethod
    def _refused(response: Any) -> RefusedError:
        body = response.read(_ERROR_BYTES, decode_content=True)
        try:
            status = msgspec.json.decode(body, type=dict[str, Any])
        except (ValueError, RecursionError):
            # A proxy responds with plain text if its backend is unavailable.
            status = {"message": body.decode("utf-8", "replace").strip()}
        return refusal(
            {**status, "code": response.status},
            retry_after_seconds(response.headers.get("Retry-After")) or 0.0,
        )


def _shut_down(response: Any) -> None:
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        response.shutdown()


def refusal(status: Mapping[str, Any], retry_after: float = 0.0) -> RefusedError:
    """Return the error for a Status object, with a message short enough for a log line."""
    code, message = status.get("code"), str(status.get("message", ""))[:500]
    code = code if isinstance(code, int) else 0
    kind = ExpiredError if code == HTTPStatus.GONE else RefusedError
    return kind(code, message, retry_after)
