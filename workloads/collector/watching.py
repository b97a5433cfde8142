"""Threads that keep a mirror current: each lists a resource, and then watches it."""

from __future__ import annotations

import threading
import time
from itertools import chain
from typing import TYPE_CHECKING, Final

import structlog

from workloads.collector.backoff import Backoff
from workloads.collector.errors import ExpiredError, InvalidAnswerError, KubernetesError
from workloads.collector.listing import objects, server_version
from workloads.collector.mirror import PODS, REPLICASETS, WORKLOADS
from workloads.collector.troubles import FailuresInARow
from workloads.kubernetes.raw import child, text
from workloads.kubernetes.resources import UNKNOWN_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.collector.client import ClusterClient, Resource
    from workloads.collector.listing import Progress
    from workloads.collector.mirror import Mirror
    from workloads.collector.troubles import Trouble

log = structlog.get_logger("workloads.collector")


# The seconds that a watch must last after a failure before the mirror counts as current.
_PROOF_SECONDS: Final = 5.0


class Reflector(threading.Thread):
    """A thread that lists a resource, watches it, and lists it again when the watch expires (410).

    `is_current` is true from the opening of a watch until an error. After a failure, a watch must
    first receive an event or last for a few seconds, because some servers respond with 200 and
    close the connection. The failure therefore also ends in a cluster without events.
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
        self._stopping, self._progress = stop, progress
        self._backoff = Backoff()
        self._version = ""
        # The time (monotonic) from which the mirror counts as current; None when it is stale.
        self._believed_from: float | None = None
        self._failures = FailuresInARow(resource.name)
        # Whether the version has expired since the last success.
        self._expired = False

    @property
    def is_current(self) -> bool:
        """Return whether a watch keeps this resource up to date in the mirror."""
        believed_from = self._believed_from
        return believed_from is not None and time.monotonic() >= believed_from

    @property
    def trouble(self) -> Trouble | None:
        """Return the trouble of the resource, after several consecutive failures."""
        return None if self.is_current else self._failures.trouble

    def run(self) -> None:
        while not self._stopping.is_set():
            pause = 0.0
            try:
                if not self._version or self._is_rewound():
                    self._list()
                self._watch()
            except ExpiredError as error:
                # Changes were missed: the mirror is stale until the list is complete.
                self._version = ""
                self._fail(error)
                if not self._expired:
                    self._backoff.reset()
                self._expired = True
            except KubernetesError as error:
                if isinstance(error, InvalidAnswerError):
                    # The watch would send the same event again. A list skips unreadable objects.
                    self._version = ""
                self._fail(error)
                pause = error.retry_after
            except Exception as error:
                # If the thread ended, its part of the mirror would become stale unnoticed.
                log.exception("watch_failed", resource=self._resource.name)
                self._version = ""
                self._fail(error)
            self._stopping.wait(self._backoff.next_pause(pause))

    def _fail(self, error: Exception) -> None:
        if self.is_current:  # the failures before this one are over
            self._succeed()
        self._believed_from = None
        if not self._stopping.is_set():
            self._failures.add("watch_lost", error)

    def _succeed(self) -> None:
        """Mark the mirror as current, and reset the pauses."""
        self._believed_from = time.monotonic()
        self._failures.clear()
        self._expired = False
        self._backoff.reset()

    def _is_rewound(self) -> bool:
        """Return whether the API server was restored from a backup during a failure.

        The server accepts a watch from a later version than its own. The watch then receives no
        changes until the server reaches this version.
        """
        if self._failures.last is None:
            return False
        ours, current = self._version, self._client.version(self._resource)
        return ours.isdecimal() and current.isdecimal() and int(current) < int(ours)

    def _list(self) -> None:
        server = UNKNOWN_VERSION
        if self._resource.name == PODS.name:
            # Read each time: the API server may have been upgraded during the outage.
            server = server_version(self._client)
        pages = self._client.pages(self._resource)
        first = next(pages)
        listed = objects(chain([first], pages), self._resource.name, self._progress)
        self._mirror.fill(self._resource, listed, server)
        # All pages have the version of the first page. The watch continues from this version.
        self._version = first.metadata.resource_version

    def _watch(self) -> None:
        with self._client.watch(self._resource, self._version) as events:
            opened = time.monotonic()
            self._believed_from = opened + (_PROOF_SECONDS if self._failures.last else 0.0)
            for kind, raw in events:
                self._mirror.change(self._resource, kind, raw)
                self._version = text(child(raw, "metadata"), "resourceVersion") or self._version
                self._succeed()
        self._succeed()


def reflect(
    client: ClusterClient,
    mirror: Mirror,
    stop: threading.Event,
    progress: Progress,
    namespaces: Sequence[str] = (),
) -> list[Reflector]:
    """Start a reflector for each resource, or for each resource of each given namespace."""
    reflectors = [
        Reflector(client, scoped, mirror, stop, progress)
        for resource in (*WORKLOADS.values(), REPLICASETS, PODS)
        for scoped in resource.scoped(namespaces)
    ]
    for reflector in reflectors:
        reflector.start()
    return reflectors
