"""Read a cluster once, with the mirror of a watch. Each page is reduced to facts as it arrives."""

from __future__ import annotations

import threading
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog

from workloads.collector.errors import KubernetesError, RefusedError
from workloads.collector.mirror import PODS, REPLICASETS, WORKLOADS, Mirror
from workloads.collector.usage import WITHIN, UsageReader
from workloads.kubernetes.raw import child, text
from workloads.kubernetes.resources import UNKNOWN_VERSION, ServerVersion

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from workloads.collector.client import ClusterClient, Page, Resource
    from workloads.kubernetes.raw import JsonObject
    from workloads.kubernetes.records import WorkloadRecord

    #: Called with a resource's name, the number of objects read, and the number left if known.
    Progress: TypeAlias = Callable[[str, int, int | None], None]

log = structlog.get_logger("workloads.collector")

# The maximum digits of a major or minor version.
_MOST_DIGITS: Final = 9


def read_cluster(
    client: ClusterClient,
    as_of: dt.datetime,
    progress: Progress,
    namespaces: Sequence[str] = (),
) -> Sequence[WorkloadRecord]:
    """Return all workloads of a cluster at `as_of`, the local time (aware) before the lists.

    Usage is read in parallel.

    Raises:
        KubernetesError: a list failed or is incomplete.
    """
    reader = UsageReader(client, namespaces, None, threading.Event())
    reader.start()

    def listed(resource: Resource) -> Iterator[JsonObject]:
        pages = chain.from_iterable(map(client.pages, resource.scoped(namespaces)))
        return objects(pages, resource.name, progress)

    mirror = Mirror()
    for resource in (*WORKLOADS.values(), REPLICASETS):
        mirror.fill(resource, listed(resource))
    mirror.fill(PODS, listed(PODS), server_version(client))
    return mirror.snapshot(client.server_time(as_of), reader.latest(WITHIN))


def objects(pages: Iterable[Page], resource: str, progress: Progress) -> Iterator[JsonObject]:
    """Yield the objects of a list, and call ``progress`` after each page."""
    done = 0
    for page in pages:
        done += len(page.items or ())
        yield from page.objects()
        progress(resource, done, page.metadata.remaining_item_count)


def cluster_uid(client: ClusterClient) -> str:
    """Return the uid of the namespace kube-system, which is unique per cluster.

    Return "" if the collector cannot read the namespace. The service then cannot detect that a
    report comes from another cluster.

    Raises:
        KubernetesError: the API server responds with another error, or does not respond.
    """
    try:
        namespace: JsonObject = client.get("/api/v1/namespaces/kube-system")
    except RefusedError as error:
        if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise
        log.warning("cluster_uid_unknown", error=str(error))
        return ""
    return text(child(namespace, "metadata"), "uid")


def server_version(client: ClusterClient) -> ServerVersion:
    """Return the version of the API server, or ``UNKNOWN_VERSION``.

    Log a failure instead of raising it: the version only selects the formula for pods that are
    being resized, and must not prevent the collection of a cluster.
    """
    try:
        version: JsonObject = client.get("/version")
    except KubernetesError as error:
        log.warning("server_version_unknown", error=str(error))
        return UNKNOWN_VERSION
    # Distributions append a sign, as in "37+".
    numbers = [text(version, part).rstrip("+") for part in ("major", "minor")]
    if not all(number.isdecimal() and len(number) <= _MOST_DIGITS for number in numbers):
        return UNKNOWN_VERSION
    return ServerVersion(*map(int, numbers))
