"""Lists and watches of an API server, as raw JSON.

The `kubernetes` package's typed objects would cost four times as much as raw JSON, its informers
have neither pages nor pauses, and its watch fails on a 410 without decoding.
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

# Of pods that is a megabyte, and as much again while a page is unpacked.
PAGE_SIZE: Final = 100
_READ_TIMEOUT: Final = 60.0
# Below a minute, after which proxies cut connections that are quiet. A quiet resource has no
# bookmarks on older servers, so that only the end of a watch tells it from a dead connection.
_WATCH_SECONDS: Final = (45, 55)
_WATCH_OVERTIME: Final = 10.0
_BLOCK: Final = 64 * 1024
# Bytes of a page or an object, and of an event. Kubernetes stores objects of up to 1.5 MiB in a
# binary form, and a page has a hundred.
_LARGEST: Final = 512 * 1024 * 1024
_LONGEST_LINE: Final = 16 * 1024 * 1024
_WHOLE: Final = "application/json"
# Only the metadata. Servers answer 406 to the form of one object for a list; to the form of a
# list for a watch they answer 200, and then hang up without a byte.
_LIST_METADATA: Final = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{_WHOLE}"
_WATCH_METADATA: Final = f"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{_WHOLE}"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct):
    """A page of a list. Items are raw, so that only one is ever decoded at a time."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None

    def objects(self) -> Iterator[JsonObject]:
        """Decode the items, one after the other, and let go of each: no two pages are held.

        An item that is no JSON object, or has a number that none can hold, is left out and logged.
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
    """A list's path; `metadata_only` when nothing else of its objects is needed.

    `aggregated`: it is served by another server behind the API server.
    """

    path: str
    metadata_only: bool = False
    aggregated: bool = False

    @property
    def name(self) -> str:
        """The last part of the path, for people."""
        return self.path.rpartition("/")[2]

    def scoped(self, namespaces: Sequence[str]) -> list[Resource]:
        """Return the same of each of these namespaces; of the whole cluster when there are none."""
        group, _, name = self.path.rpartition("/")
        return [
            msgspec.structs.replace(
                self, path=f"{group}/namespaces/{quote(namespace, safe='')}/{name}"
            )
            for namespace in namespaces
        ] or [self]


class ClusterClient:
    """Lists and watches of one cluster. Threads may share it; `close` ends what they wait for.

    The arguments are those of ``Connection``.
    """

    def __init__(
        self, load: Callable[[], ApiClient | AccountApi], failures: tuple[type[Exception], ...]
    ) -> None:
        self._connection = Connection(load, failures)

    def get(self, path: str) -> Any:
        """Return one object.

        Raises:
            RefusedError, UnreachableError: there was another answer, or none.
        """
        with self._connection.answer(Request(path, {}, _WHOLE, _READ_TIMEOUT)) as response:
            return _decode(_read(response), dict[str, Any])

    def pages(self, resource: Resource) -> Iterator[Page]:
        """Yield a list's pages, which are all of one resourceVersion.

        Raises:
            ExpiredError: it took too long, and must be begun again.
            RefusedError, UnreachableError: there was another answer, or none.
        """
        parameters = {"limit": str(PAGE_SIZE)}
        while True:
            page = self._page(resource, parameters)
            yield page
            if not page.metadata.continue_:
                return
            if page.metadata.continue_ == parameters.get("continue"):
                raise InvalidAnswerError(f"{resource.path}: a page continues with itself")
            parameters = {**parameters, "continue": page.metadata.continue_}

    def unpaged(self, resource: Resource, *, within: float) -> Iterator[JsonObject]:
        """Yield the objects of a list that has no pages, each as it comes, within so many seconds.

        What was yielded before an error is a part of the list. The errors are those of `pages`.
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
        """Follow the changes after a resourceVersion: give (type, object) until the server ends it.

        Raises:
            ExpiredError: the version is too old; list again.
            EndedEarlyError: it ended long before its time without an event.
            RefusedError, UnreachableError: there was another answer, or it broke off.
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
            silence=seconds + _WATCH_OVERTIME,
            encoding="identity",
        )
        with self._connection.answer(request) as response:
            yield self._events(response, resource, seconds)

    def server_time(self, moment: dt.datetime) -> dt.datetime:
        """Return what the API server's clock shows at a moment of ours, as its answers tell."""
        return self._connection.clock.at(moment)

    def close(self) -> None:
        """End all that is under way, in whatever thread, and refuse more."""
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
                raise InvalidAnswerError(f"{resource.path}: an event without an end")
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
    body: bytes = response.read(_LARGEST + 1, decode_content=True)
    if len(body) > _LARGEST:
        raise InvalidAnswerError(f"an answer of more than {_LARGEST} bytes")
    return body


def _decode(body: bytes, form: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=form)
    except (ValueError, RecursionError) as error:
        raise _no_json(error) from error


def _no_json(error: Exception) -> InvalidAnswerError:
    return InvalidAnswerError(f"not the JSON of an API server: {error}")
