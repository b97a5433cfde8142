"""A cluster that the collector reads, and the destination of its reports."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workloads.collector.client import ClusterClient
    from workloads.collector.destinations import Destination


@dataclasses.dataclass(frozen=True)
class Target:
    """A cluster to collect, which can be stopped independently. `name` appears in messages.

    `interval` is the number of seconds between two snapshots of a watch.
    """

    name: str
    client: ClusterClient
    destination: Destination
    interval: int
    stopped: threading.Event = dataclasses.field(default_factory=threading.Event)

    def stop(self) -> None:
        """Abort waiting. A report in progress is applied completely or not at all."""
        self.stopped.set()
        self.client.close()
        self.destination.stop()
