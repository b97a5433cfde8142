"""An API server, as raw JSON over the connection that the `kubernetes` package sets up.

The package does configuration, authentication, exec plugins and TLS. Its typed objects would cost
four times as much as raw JSON, its informers have neither pages nor pauses, and its watch fails on
a 410 without decoding.
"""

from __future__ import annotations

import contextlib
import random
import threading
from http import HTTPStatus
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec

from workloads.collector.errors import ClosedError, ExpiredError, RefusedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubernetes.client import ApiClient

    from workloads.kubernetes.raw import JsonObject

PAGE_SIZE: Final = 500
_CONNECT_TIMEOUT: Final = 10.0
_READ_TIMEOUT: Final = 60.0
# A watch is quiet for a minute at most: there is a bookmark. Longer silence is a dead connection.
_WATCH_SILENCE: Final = 90.0
_WATCH_SECONDS: Final = (240, 300)
# A server that wishes for more is asked again all the same.
_LONGEST_WISH: Final = 300
# What is read of an answer that is only an error's.
_ERROR_BYTES: Final = 64 * 1024
_BLOCK: Final = 64 * 1024
_WHOLE: Final = "application/json"
# Only the metadata: of a ReplicaSet nothing else is needed.
_METADATA: Final = ",".join(
    f"application/json;as={kind};g=meta.k8s.io;v=v1"
    for kind in ("PartialObjectMetadataList", "PartialObjectMetadata")
)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct):
    """A page of a list. Items are raw, so that only one is ever decoded at a time."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None

    def objects(self) -> Iterator[JsonObject]:
        """Decode the items, one after the other."""
        for raw in self.items or ():
            yield msgspec.json.decode(raw, type=dict[str, Any])


class _Event(msgspec.Struct):
    type: str
    object: dict[str, Any]


class Resource(msgspec.Struct, frozen=True):
    """A list's path; `metadata_only` when nothing else of its objects is needed."""

    path: str
    metadata_only: bool = False

    @property
    def name(self) -> str:
        """The last part of the path, for people."""
        return self.path.rpartition("/")[2]


class ClusterClient:
    """Lists and watches of one cluster. Threads may share it; `close` ends what they wait for.

    `failures` are the errors of the package and of what it stands on, which is an extra and not
    imported here.
    """

    def __init__(self, api: ApiClient, failures: tuple[type[Exception], ...]) -> None:
        self._api = api
        self._failures: tuple[type[Exception], ...] = (*failures, OSError)
        self._host: str = api.configuration.host.rstrip("/")
        self._open: set[Any] = set()
        self._waiting: set[SimpleQueue[Any]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def get(self, path: str) -> Any:
        """Return one object.

        Raises:
            RefusedError, UnreachableError: there was another answer, or none.
        """
        with self._answer(path, {}, _WHOLE, _READ_TIMEOUT) as response:
            return self._decode(response.read(decode_content=True), dict[str, Any])

    def pages(self, resource: Resource) -> Iterator[Page]:
        """Yield a list's pages, which are all of one resourceVersion.

        Raises:
            ExpiredError: it took too long, and must be begun again.
            RefusedError, UnreachableError: there was another answer, or none.
        """
        parameters = {"limit": str(PAGE_SIZE)}
        while True:
            page = self.whole(resource, parameters)
            yield page
            if not page.metadata.continue_:
                return
            parameters["continue"] = page.metadata.continue_

    def whole(self, resource: Resource, parameters: Mapping[str, str] | None = None) -> Page:
        """Return a list, or a page of it, in one answer; the errors are those of `pages`."""
        accept = f"{_METADATA},{_WHOLE}" if resource.metadata_only else _WHOLE
        with self._answer(resource.path, parameters or {}, accept, _READ_TIMEOUT) as response:
            page: Page = self._decode(response.read(decode_content=True), Page)
            return page

    @contextlib.contextmanager
    def watch(self, resource: Resource, version: str) -> Iterator[Iterator[tuple[str, JsonObject]]]:
        """Follow the changes after a resourceVersion: give (type, object) until the server ends it.

        Raises:
            ExpiredError: the version is too old; list again.
            RefusedError, UnreachableError: there was another answer, or it broke off.
        """
        parameters = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(*_WATCH_SECONDS)),  # noqa: S311 - no secret
        }
        accept = f"{_METADATA},{_WHOLE}" if resource.metadata_only else _WHOLE
        with self._answer(
            resource.path, parameters, accept, _WATCH_SILENCE, "identity"
        ) as response:
            yield self._events(response)

    def close(self) -> None:
        """End all that is under way, in whatever thread, and refuse more."""
        with self._lock:
            self._closed = True
            for response in self._open:
                with contextlib.suppress(OSError, RuntimeError, ValueError):
                    response.shutdown()
            for answers in self._waiting:
                answers.put(OSError("closed"))

    def _events(self, response: Any) -> Iterator[tuple[str, JsonObject]]:
        rest = b""
        for block in response.stream(_BLOCK, decode_content=True):
            *lines, rest = (rest + block).split(b"\n")
            for line in filter(bytes.strip, lines):
                event: _Event = self._decode(line, _Event)
                if event.type == "ERROR":
                    raise _refusal(event.object)
                yield event.type, event.object

    @contextlib.contextmanager
    def _answer(
        self,
        path: str,
        parameters: Mapping[str, str],
        accept: str,
        read_timeout: float,
        encoding: str = "gzip",
    ) -> Iterator[Any]:
        headers = {"Accept": accept, "Accept-Encoding": encoding, "User-Agent": "infra-service"}
        url = f"{self._host}{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        response = None
        try:
            response = self._ask(path, url, headers, read_timeout)
            if response.status != HTTPStatus.OK:
                raise self._refused(response)
            yield response
        except self._failures as error:
            if self._closed:
                raise ClosedError(f"{path}: stopped before it was read") from error
            raise UnreachableError(f"{path}: {type(error).__name__}: {error}") from error
        finally:
            if response is not None:
                self._forget(response)

    def _ask(self, path: str, url: str, headers: dict[str, str], read_timeout: float) -> Any:
        """Return the answer as soon as it begins, or fail as soon as the client is closed.

        A thread of its own waits for it, since nothing else ends a plugin that is run for a token,
        the look-up of a name, or a connection that is being made.
        """
        answers: SimpleQueue[Any] = SimpleQueue()

        def ask() -> None:
            try:
                # Renews tokens that expire, of a service account or of an exec plugin.
                self._api.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
                timeouts = _CONNECT_TIMEOUT, read_timeout
                answer = self._api.call_api("GET", url, headers, _request_timeout=timeouts)
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                answers.put(error)
            else:
                self._give(answers, answer.response)

        with self._lock:
            if self._closed:
                raise OSError("closed")
            self._waiting.add(answers)
        threading.Thread(target=ask, name=f"ask-{path}", daemon=True).start()
        found = answers.get()
        with self._lock:
            self._waiting.discard(answers)
        if isinstance(found, BaseException):
            raise found
        return found

    def _give(self, answers: SimpleQueue[Any], response: Any) -> None:
        with self._lock:
            if self._closed:  # and whoever waited was told so
                response.close()
            else:
                self._open.add(response)
                answers.put(response)

    def _forget(self, response: Any) -> None:
        with self._lock:
            self._open.discard(response)
        # One that was read to its end has given its connection back; any other's is unusable.
        response.close()

    def _refused(self, response: Any) -> RefusedError:
        body = response.read(_ERROR_BYTES, decode_content=True)
        try:
            status = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            # A dead backend's answer is plain text.
            status = {"message": body.decode("utf-8", "replace").strip()}
        wish = response.headers.get("Retry-After", "")
        status = {**status, "code": response.status}
        seconds = min(int(wish[:9]), _LONGEST_WISH) if wish.isdecimal() else 0
        return _refusal(status, float(seconds))

    @staticmethod
    def _decode(body: bytes, form: Any) -> Any:
        try:
            return msgspec.json.decode(body, type=form)
        except (ValueError, RecursionError) as error:
            raise UnreachableError(f"not the JSON of an API server: {error}") from error


def _refusal(status: Mapping[str, Any], retry_after: float = 0.0) -> RefusedError:
    """Return the error of a Status object, which is cut to what a log line can hold."""
    code, message = status.get("code"), str(status.get("message", ""))[:500]
    code = code if isinstance(code, int) else 0
    kind = ExpiredError if code == HTTPStatus.GONE else RefusedError
    return kind(code, message, retry_after)
