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
    """A cluster to collect; each has an end of its own. `name` is what messages call it.

    `interval` is how many seconds lie between two snapshots when it is followed.
    """

    name: str
    client: ClusterClient
    destination: Destination
    interval: int
    stopped: threading.Event = dataclasses.field(default_factory=threading.Event)

    def stop(self) -> None:
        """Wait for nothing any more; a report is applied as a whole, or not at all."""
        self.stopped.set()
        self.client.close()
        self.destination.stop()
