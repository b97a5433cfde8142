"""Read lists and watches from an API server, as raw JSON.

The typed objects of the `kubernetes` package would require four times the memory of raw JSON. Its
informers do not paginate or pause, and its watch without decoding cannot handle a 410.
"""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
import structlog

from workloads.collector.connection import Connection, Request, refusal
from workloads.collector.errors import EndedEarlyError, InvalidAnswerError
from workloads.collector.list_items import list_items

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Sequence

    from kubernetes.client import ApiClient

    from workloads.collector.account import AccountApi
    from workloads.kubernetes.raw import JsonObject

log = structlog.get_logger("workloads.collector")

# A page of pods requires about 1 MB, and twice as much while it is decoded.
PAGE_SIZE: Final = 100
_READ_TIMEOUT: Final = 60.0
# Less than a minute, because proxies cut quiet connections after a minute. Older servers send no
# bookmarks for a quiet resource, so only the end of a watch reveals a dead connection.
_WATCH_SECONDS: Final = (45, 55)
_WATCH_OVERTIME: Final = 10.0
_BLOCK: Final = 64 * 1024
# The maximum bytes of a page or an object, and of an event. Kubernetes stores objects of up to 1.5
# MiB in a binary form, and a page contains a hundred objects.
_LARGEST: Final = 512 * 1024 * 1024
_LONGEST_LINE: Final = 16 * 1024 * 1024
_WHOLE: Final = "application/json"
# Request only the metadata. A list requires the list form: servers respond to the object form with
# 406. A watch requires the object form: servers respond to the list form with 200, and close the
# connection without sending a byte.
_LIST_METADATA: Final = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{_WHOLE}"
_WATCH_METADATA: Final = f"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{_WHOLE}"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct):
    """A page of a list. Items are raw, so that only a single item is decoded at a time.

    API servers always send ``items``, which may be null. A JSON object without it, such as a
    response of a proxy, must not count as an empty list.
    """

    items: list[msgspec.Raw] | None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)

    def objects(self) -> Iterator[JsonObject]:
        """Yield the decoded items. Free each raw item, so that memory does not contain two pages.

        Log and skip an item that is not a JSON object, or that contains a number out of range.
        """
        items = self.items or []
        items.reverse()
        while items:
            try:
                yield msgspec.json.decode(items.pop(), type=dict[str, Any])
            except (ValueError, RecursionError) as error:
                log.warning("item_unreadable", error=str(error))


class _Event(msgspec.Struct):
    type: str
    object: dict[str, Any]


class Resource(msgspec.Struct, frozen=True):
    """The path of a list. `metadata_only` requests only the metadata of the objects.

    `aggregated` means that another server behind the API server responds.
    """

    path: str
    metadata_only: bool = False
    aggregated: bool = False

    @property
    def name(self) -> str:
        """Return the last segment of the path, for messages."""
        return self.path.rpartition("/")[2]

    def scoped(self, namespaces: Sequence[str]) -> list[Resource]:
        """Return one resource per namespace, or the cluster-wide resource without namespaces."""
        group, _, name = self.path.rpartition("/")
        return [
            msgspec.structs.replace(
                self, path=f"{group}/namespaces/{quote(namespace, safe='')}/{name}"
            )
            for namespace in namespaces
        ] or [self]


class ClusterClient:
    """A thread-safe client for lists and watches of a cluster. `close` aborts open requests.

    See ``Connection`` for the arguments.
    """

    def __init__(
        self, load: Callable[[], ApiClient | AccountApi], failures: tuple[type[Exception], ...]
    ) -> None:
        self._connection = Connection(load, failures)

    def get(self, path: str) -> Any:
        """Return the object at a path.

        Raises:
            RefusedError, UnreachableError: the status is not 200, or no response arrived.
        """
        with self._connection.answer(Request(path, {}, _WHOLE, _READ_TIMEOUT)) as response:
            return _decode(_read(response), dict[str, Any])

    def pages(self, resource: Resource) -> Iterator[Page]:
        """Yield a list's pages, which all have the same resourceVersion.

        Raises:
            ExpiredError: the list took too long to read. The caller must start again.
            RefusedError, UnreachableError: the status is not 200, or no response arrived.
        """
        parameters = {"limit": str(PAGE_SIZE)}
        while True:
            page = self._page(resource, parameters)
            yield page
            if not page.metadata.continue_:
                return
            if page.metadata.continue_ == parameters.get("continue"):
                raise InvalidAnswerError(f"{resource.path}: the continue token of a page repeats")
            parameters = {**parameters, "continue": page.metadata.continue_}

    def version(self, resource: Resource) -> str:
        """Return the current resourceVersion of a list. Raise the same errors as `pages`."""
        return self._page(resource, {"limit": "1"}).metadata.resource_version

    def unpaged(self, resource: Resource, *, within: float) -> Iterator[JsonObject]:
        """Yield the objects of an unpaginated list as they arrive, for at most ``within`` seconds.

        Raise the same errors as `pages`. The objects yielded before an error are incomplete.
        """
        request = Request(
            resource.path, {}, _WHOLE, _READ_TIMEOUT, within, aggregated=resource.aggregated
        )
        with self._connection.answer(request) as response:
            try:
                yield from list_items(response.stream(_BLOCK, decode_content=True))
            except (ValueError, RecursionError) as error:
                raise _no_json(error) from error

    @contextlib.contextmanager
    def watch(self, resource: Resource, version: str) -> Iterator[Iterator[tuple[str, JsonObject]]]:
        """Watch changes after a resourceVersion. Yield (type, object) until the watch ends.

        Raises:
            ExpiredError: the version is too old. The caller must list again.
            EndedEarlyError: the watch ended long before its time, without an event.
            RefusedError, UnreachableError: the status is not 200, or the response is incomplete.
        """
        seconds = random.randint(*_WATCH_SECONDS)  # noqa: S311 - no secret
        request = Request(
            resource.path,
            {
                "watch": "1",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(seconds),
            },
            _WATCH_METADATA if resource.metadata_only else _WHOLE,
            idle_timeout=seconds + _WATCH_OVERTIME,
            encoding="identity",
        )
        with self._connection.answer(request) as response:
            yield self._events(response, resource, seconds)

    def server_time(self, moment: dt.datetime) -> dt.datetime:
        """Convert a local time to the API server's clock, as estimated from its responses."""
        return self._connection.clock.at(moment)

    def close(self) -> None:
        """Abort all open requests in any thread, and refuse new requests."""
        self._connection.close()

    def _page(self, resource: Resource, parameters: dict[str, str]) -> Page:
        accept = _LIST_METADATA if resource.metadata_only else _WHOLE
        request = Request(resource.path, parameters, accept, _READ_TIMEOUT)
        with self._connection.answer(request) as response:
            page: Page = _decode(_read(response), Page)
            return page

    @staticmethod
    def _events(
        response: Any, resource: Resource, seconds: float
    ) -> Iterator[tuple[str, JsonObject]]:
        started = time.monotonic()
        anything, rest = False, b""
        for block in response.stream(_BLOCK, decode_content=True):
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                raise InvalidAnswerError(
                    f"{resource.path}: a watch event of more than {_LONGEST_LINE} bytes"
                )
            for line in filter(bytes.strip, lines):
                event: _Event = _decode(line, _Event)
                if event.type == "ERROR":
                    raise refusal(event.object)
                anything = True
                yield event.type, event.object
        lasted = time.monotonic() - started
        if not anything and lasted < seconds / 2:
            raise EndedEarlyError(
                f"{resource.path}: the watch ended after {lasted:.1f} of {seconds} s "
                "without an event"
            )


def _read(response: Any) -> bytes:
    try:
        body: bytes = response.read(_LARGEST + 1, decode_content=True)
    except ValueError as error:  # http.client's, for a chunk with a negative size
        raise InvalidAnswerError(f"invalid HTTP from the API server: {error}") from error
    if len(body) > _LARGEST:
        raise InvalidAnswerError(f"a response of more than {_LARGEST} bytes")
    return body


def _decode(body: bytes, form: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=form)
    except (ValueError, RecursionError) as error:
        raise _no_json(error) from error


def _no_json(error: Exception) -> InvalidAnswerError:
    return InvalidAnswerError(f"invalid JSON from the API server: {error}")
