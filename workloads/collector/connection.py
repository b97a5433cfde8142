"""Requests to an API server, over what the `kubernetes` package, or `account`, sets up.

The package does configuration, authentication, exec plugins and TLS. Credentials that end (a token
file, a token in a kubeconfig, a client certificate) are read again after a 401.
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

from workloads.collector.backoff import wished_pause
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
# What is read of an answer that is only an error's.
_ERROR_BYTES: Final = 64 * 1024
_AUTHORIZATION: Final = "authorization"


class Request(msgspec.Struct, frozen=True):
    """One GET. `silence` is how many seconds may pass without a byte, `within` how many in all.

    `aggregated`: the API server hands it on to another, whose clock is its own.
    """

    path: str
    parameters: dict[str, str]
    accept: str
    silence: float
    within: float | None = None
    encoding: str = "gzip"
    aggregated: bool = False


class Connection:
    """Answers of one API server. Threads may share it; `close` ends what they wait for.

    `load` reads the credentials, anew each time. `failures` are the errors of the package and of
    what it stands on, which is an extra and not imported here.
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
        """Give the answer when it is 200.

        Raises:
            RefusedError, UnreachableError: there was another answer, or none, or it broke off.
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
            # Python goes on to read from a connection that was shut down, and without TLS: what
            # comes then is no answer, and whatever fails with it was ended by us.
            if self._closed:
                raise ClosedError(f"{request.path}: stopped before it was read") from error
            if cut.is_set():
                reason = f"took longer than {request.within:.0f} s"
            elif isinstance(error, InvalidAnswerError):
                raise
            else:
                reason = f"{type(error).__name__}: {error}"
            raise UnreachableError(f"{request.path}: {reason}") from error
        finally:
            if timer is not None:
                timer.cancel()
            if response is not None:
                self._forget(response)

    def close(self) -> None:
        """End all that is under way, in whatever thread, and refuse more."""
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
        """Return the answer as soon as it begins, or fail as soon as the connection is closed.

        A thread of its own waits for it, since nothing else ends a plugin that is run for a token,
        the look-up of a name, or a connection that is being made.
        """
        answers: SimpleQueue[Any] = SimpleQueue()

        def ask() -> None:
            try:
                response = self._authenticated(request)
            except ValueError:  # whose text would show the token
                answers.put(OSError("the address or the credentials are not of a form to be sent"))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                answers.put(error)
            else:
                self._give(answers, response)

        with self._lock:
            if self._closed:
                raise OSError("closed")
            self._waiting.add(answers)
        threading.Thread(target=ask, name=f"ask-{request.path}", daemon=True).start()
        try:
            found = answers.get(timeout=request.within)
        except Empty:
            found = TimeoutError(f"no answer within {request.within:.0f} s")
        with self._lock:
            self._waiting.discard(answers)
        if isinstance(found, BaseException):
            raise found
        return found

    def _authenticated(self, request: Request) -> Any:
        """Ask, and after a 401 once more with the credentials as they are now."""
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
                return response  # there is no other token
        except BaseException:
            response.close()
            raise
        response.close()
        return self._send(api, request)[0]

    def _send(self, api: ApiClient | AccountApi, request: Request) -> tuple[Any, str | None]:
        """Return the answer, and the credentials that it was asked with."""
        headers = self._headers(api, request)
        query = f"?{urlencode(request.parameters)}" if request.parameters else ""
        url = f"{api.configuration.host.rstrip('/')}{request.path}{query}"

        def call() -> Any:
            timeouts = _CONNECT_TIMEOUT, request.silence
            return api.call_api("GET", url, headers, _request_timeout=timeouts).response

        try:
            response = call()
        except self._failures as error:
            # The server may close a kept connection at the moment when the next request is sent
            # on it. RFC 9112, 9.3.1: repeat a safe request, on a new connection, once.
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
        # Renews tokens whose end the package knows, of a service account or of an exec plugin.
        api.update_params_for_auth(headers, [], ["BearerToken"], request.path, "GET", None)
        # A token file may end with a line end, which no header may.
        return {name: value.strip() for name, value in headers.items()}

    def _give(self, answers: SimpleQueue[Any], response: Any) -> None:
        with self._lock:
            if answers in self._waiting and not self._closed:
                self._open.add(response)
                answers.put(response)
            else:  # whoever waited was told otherwise
                response.close()

    def _forget(self, response: Any) -> None:
        with self._lock:
            self._open.discard(response)
        # One that was read to its end has given its connection back; any other's is unusable.
        response.close()

    @staticmethod
    def _refused(response: Any) -> RefusedError:
        body = response.read(_ERROR_BYTES, decode_content=True)
        try:
            status = msgspec.json.decode(body, type=dict[str, Any])
        except (ValueError, RecursionError):
            # A dead backend's answer is plain text.
            status = {"message": body.decode("utf-8", "replace").strip()}
        return refusal(
            {**status, "code": response.status},
            wished_pause(response.headers.get("Retry-After", "")),
        )


def _shut_down(response: Any) -> None:
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        response.shutdown()


def refusal(status: Mapping[str, Any], retry_after: float = 0.0) -> RefusedError:
    """Return the error of a Status object, which is cut to what a log line can hold."""
    code, message = status.get("code"), str(status.get("message", ""))[:500]
    code = code if isinstance(code, int) else 0
    kind = ExpiredError if code == HTTPStatus.GONE else RefusedError
    return kind(code, message, retry_after)
