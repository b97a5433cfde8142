"""The history of workloads: health transitions, and gaps between reports.

The transaction of a report writes both tables. They do not reference clusters or workloads, so the
history of a deleted workload remains readable until housekeeping deletes it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from django.db import models
from django.db.models import Case, CharField, F, Q, Value, When

from workloads.kubernetes.facts import MAX_STATUS_REASON
from workloads.kubernetes.health import HealthStatus
from workloads.models.workloads import MAX_HEALTH_STATUS

_STATUSES: Final = [status.value for status in HealthStatus]
_UNWELL: Final = (HealthStatus.DEGRADED.value, HealthStatus.ERROR.value)


class TransitionType(StrEnum):
    """The type of a transition, as sent over HTTP."""

    APPEARED = "APPEARED"
    CHANGED = "CHANGED"
    DISAPPEARED = "DISAPPEARED"


class TransitionQuerySet(models.QuerySet["Transition"]):
    def of_health(self) -> TransitionQuerySet:
        """Return changes in health, and unhealthy workloads that appeared or were deleted.

        Exclude changes of only the reason, and all other workloads that appeared or were deleted.
        """
        was_there, is_there = Q(from_health_status__isnull=False), Q(to_health_status__isnull=False)
        return self.filter(
            (was_there & is_there & ~Q(from_health_status=F("to_health_status")))
            | (~was_there & Q(to_health_status__in=_UNWELL))
            | (~is_there & Q(from_health_status__in=_UNWELL))
        )

    def with_type(self) -> TransitionQuerySet:
        return self.annotate(
            type=Case(
                When(from_health_status=None, then=Value(TransitionType.APPEARED.value)),
                When(to_health_status=None, then=Value(TransitionType.DISAPPEARED.value)),
                default=Value(TransitionType.CHANGED.value),
                output_field=CharField(),
            )
        )


class Transition(models.Model):
    """A change in a workload's health or its reason.

    A row also describes the time before the change: the workload had ``from_health_status`` from
    ``since`` until ``at``. The remaining rows therefore stay complete when older rows are deleted.
    ``status_reason`` belongs to ``to_health_status``.
    """

    pk = models.CompositePrimaryKey("workload_id", "number")
    workload_id = models.UUIDField()
    # The number of the transition within the workload. A report adds at most one transition per
    # workload. The numbers restart after all transitions of the workload have been deleted.
    number = models.IntegerField()
    cluster_id = models.UUIDField()
    since = models.DateTimeField(null=True)
    # The reporter's time of the change, and the time of receipt, which is null in rows of release
    # 1.0.
    at = models.DateTimeField()
    received_at = models.DateTimeField(null=True)
    # Null if the workload did not exist before or after the transition.
    from_health_status = models.CharField(max_length=MAX_HEALTH_STATUS, null=True)  # noqa: DJ001
    to_health_status = models.CharField(max_length=MAX_HEALTH_STATUS, null=True)  # noqa: DJ001
    status_reason = models.CharField(max_length=MAX_STATUS_REASON, blank=True)

    objects = TransitionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="transition_health_known",
                condition=(Q(from_health_status=None) | Q(from_health_status__in=_STATUSES))
                & (Q(to_health_status=None) | Q(to_health_status__in=_STATUSES)),
            ),
            models.CheckConstraint(
                name="transition_from_since",
                condition=Q(from_health_status=None, since=None, to_health_status__isnull=False)
                | Q(from_health_status__isnull=False, since__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="transition_by_time", fields=["at"]),
            models.Index(name="transition_of_cluster", fields=["cluster_id", "at"]),
        ]

    def __str__(self) -> str:
        return f"{self.from_health_status} to {self.to_health_status} at {self.at.isoformat()}"


class ReportGap(models.Model):
    """A period in which a cluster did not report for too long."""

    pk = models.CompositePrimaryKey("cluster_id", "ended_at")
    cluster_id = models.UUIDField()
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="gap_ends_after_it_began", condition=Q(ended_at__gt=F("began_at"))
            )
        ]
        indexes = [models.Index(name="gap_by_time", fields=["ended_at"])]

    def __str__(self) -> str:
        return f"{self.began_at.isoformat()} to {self.ended_at.isoformat()}"
