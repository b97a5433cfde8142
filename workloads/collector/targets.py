"""The clusters that a run of the collector reads, and the destination of each."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workloads.collector.client import ClusterClient
    from workloads.collector.destinations import Destination


@dataclasses.dataclass(frozen=True)
class Target:
    """A cluster to collect, which ends independently. `name` is its name in messages.

    `interval` is the number of seconds between two snapshots when it is followed.
    """

    name: str
    client: ClusterClient
    destination: Destination
    interval: int
    stopped: threading.Event = dataclasses.field(default_factory=threading.Event)

    def stop(self) -> None:
        """Abort waiting; a report is applied as a whole, or not at all."""
        self.stopped.set()
        self.client.close()
        self.destination.stop()
