"""Threads that keep a mirror of a cluster: each lists one resource, then watches it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

from workloads.collector.backoff import Backoff
from workloads.collector.errors import ExpiredError, KubernetesError
from workloads.collector.listing import PODS, REPLICASETS, WORKLOADS
from workloads.kubernetes.raw import child, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workloads.collector.client import ClusterClient, Resource
    from workloads.collector.listing import Progress
    from workloads.collector.mirror import Mirror
    from workloads.kubernetes.raw import JsonObject

log = structlog.get_logger("workloads.collector")


class Reflector(threading.Thread):
    """Lists a resource into the mirror, watches it, and lists again when a watch is too old.

    `is_current` while the mirror can be believed: after a list, and as long as no error has come
    since the watch was opened. `error` is the last error.
    """

    def __init__(
        self,
        client: ClusterClient,
        resource: Resource,
        mirror: Mirror,
        stop: threading.Event,
        progress: Progress,
    ) -> None:
        super().__init__(name=f"watch-{resource.name}", daemon=True)
        self._client, self._resource, self._mirror = client, resource, mirror
        self._stop_asked, self._progress = stop, progress
        self._backoff = Backoff()
        self._version = ""
        self.is_current = False
        self.error: KubernetesError | None = None

    def run(self) -> None:
        """Follow the resource until the stop event."""
        while not self._stop_asked.is_set():
            pause = 0.0
            try:
                if not self._version:
                    self._list()
                self._watch()
            except ExpiredError as error:
                # What happened meanwhile is unknown: the mirror is stale until the list is done.
                self._version = ""
                self._fail(error)
            except KubernetesError as error:
                self._fail(error)
                pause = error.retry_after
            self._stop_asked.wait(self._backoff.next_pause(pause))

    def _fail(self, error: KubernetesError) -> None:
        self.is_current = False
        self.error = error
        if not self._stop_asked.is_set():
            log.warning("watch_lost", resource=self._resource.name, error=str(error))

    def _list(self) -> None:
        versions: list[str] = []
        self._mirror.fill(self._resource, self._listed(versions))
        # All pages have the first one's, from which the watch goes on.
        self._version = versions[0]
        self.is_current = True

    def _listed(self, versions: list[str]) -> Iterator[JsonObject]:
        done = 0
        for page in self._client.pages(self._resource):
            versions.append(page.metadata.resource_version)
            yield from page.objects()
            done += len(page.items or ())
            self._progress(self._resource.name, done, page.metadata.remaining_item_count)

    def _watch(self) -> None:
        with self._client.watch(self._resource, self._version) as events:
            self.is_current = True
            for kind, raw in events:
                self._mirror.change(self._resource, kind, raw)
                self._version = text(child(raw, "metadata"), "resourceVersion") or self._version
                # A server that answers is no reason to wait; one that only hangs up is.
                self._backoff.reset()


def reflect(
    client: ClusterClient, mirror: Mirror, stop: threading.Event, progress: Progress
) -> list[Reflector]:
    """Start a reflector for each resource."""
    reflectors = [
        Reflector(client, resource, mirror, stop, progress)
        for resource in (*WORKLOADS.values(), REPLICASETS, PODS)
    ]
    for reflector in reflectors:
        reflector.start()
    return reflectors
