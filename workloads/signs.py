"""The label and the sign of each status, shared by all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workloads.cluster_health import ClusterHealth
from workloads.collection import CollectionStatus
from workloads.kubernetes.health import HealthStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGNS: Final[Mapping[str, str]] = {
    HealthStatus.HEALTHY: "ok",
    HealthStatus.DEGRADED: "warning",
    HealthStatus.ERROR: "error",
    ClusterHealth.UNREACHABLE: "lost",
    CollectionStatus.OK: "ok",
    CollectionStatus.FAILING: "error",
    CollectionStatus.SILENT: "lost",
}


def sign(status: str) -> str:
    """Return the CSS class of a status. An unspecified health has the neutral class."""
    return _SIGNS.get(status, "idle")


def word(status: str) -> str:
    """Return the label of a status, such as ``Degraded``."""
    status = status.removeprefix("WORKLOAD_HEALTH_STATUS_")
    return status if status == CollectionStatus.OK else status.capitalize()
