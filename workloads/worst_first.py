"""Order workloads by health, in segments that each follow the order of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Q

from infra_service.lib.database.bounded_pages.segments import Segment
from workloads.kubernetes.health import HealthStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Health statuses from worst to best. UNSPECIFIED precedes HEALTHY, because it may hide a failure.
MOST_TROUBLE_FIRST: Final = (
    HealthStatus.ERROR, HealthStatus.DEGRADED, HealthStatus.UNSPECIFIED, HealthStatus.HEALTHY,
)  # fmt: skip
#: The order of workloads with the same health, as in an index that begins with the health.
PLACE: Final = ("cluster_id", "namespace", "name", "kind")


def by_health(key: Sequence[str]) -> Sequence[Segment]:
    """Return one segment per health status, the worst first, each ordered by the key."""
    return [Segment(Q(health_status=health.value), key) for health in MOST_TROUBLE_FIRST]
