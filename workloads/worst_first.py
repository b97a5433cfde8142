"""Workloads in the order of their trouble, in parts that each are in the order of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Q

from infra_service.lib.database.bounded_pages.segments import Segment
from workloads.kubernetes.health import HealthStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Nobody knows of one that is not told whether it works.
MOST_TROUBLE_FIRST: Final = (
    HealthStatus.ERROR, HealthStatus.DEGRADED, HealthStatus.UNSPECIFIED, HealthStatus.HEALTHY,
)  # fmt: skip
#: The order within one health, and of the rows of an index that begins with it.
PLACE: Final = ("cluster_id", "namespace", "name", "kind")


def by_health(key: Sequence[str]) -> Sequence[Segment]:
    """Return one part for each health, in each of which the rows are in the order of the key."""
    return [Segment(Q(health_status=health.value), key) for health in MOST_TROUBLE_FIRST]
