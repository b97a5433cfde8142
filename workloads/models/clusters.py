"""The model of clusters, with the last report and the number of workloads by health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from infra_service.lib.uuids import uuid7
from workloads.collection import (
    DEFAULT_REPORT_INTERVAL,
    FAILURE_REASONS,
    MAX_COLLECTOR_VERSION,
    MAX_MESSAGE,
    MAX_REPORT_INTERVAL,
    MAX_RESOURCE,
)
from workloads.models.of_cluster import inside_clusters

if TYPE_CHECKING:
    import datetime as dt
    import uuid

    from apikeys.bindings import Binding

# A database default, because processes of the previous release register clusters during an upgrade.
_EMPTY: Any = {"default": "", "db_default": ""}


class ClusterQuerySet(models.QuerySet["Cluster"]):
    def inside(self, binding: Binding) -> ClusterQuerySet:
        return inside_clusters(self, binding, "pk")

    def timed(self) -> ClusterQuerySet:
        """Annotate ``read_at``, the database's current time, from which ages are computed."""
        return self.annotate(read_at=Now())  # type: ignore[no-redef]  # its type is declared below


class Cluster(models.Model):
    """A Kubernetes cluster that reports its workloads.

    The health of a cluster follows from the counts and the age of the last report, so a list of
    clusters reads one table. Each writer of workloads updates the counts in the same transaction.
    """

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(
        primary_key=True, default=uuid7, editable=False
    )
    name = models.CharField(max_length=200)
    # The uid of the kube-system namespace, which detects a report sent to the wrong cluster.
    uid = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - null until reported
    report_interval_seconds = models.IntegerField(default=DEFAULT_REPORT_INTERVAL)
    # The reporter's time orders the reports. The database's time of receipt determines their age.
    last_report_at = models.DateTimeField(null=True)
    last_received_at = models.DateTimeField(null=True)
    # Unchanged workloads are as fresh as the last snapshot.
    last_snapshot_at = models.DateTimeField(null=True)
    workloads_unspecified = models.IntegerField(default=0)
    workloads_healthy = models.IntegerField(default=0)
    workloads_degraded = models.IntegerField(default=0)
    workloads_error = models.IntegerField(default=0)
    # The time of the newest report in progress, so that older reports are rejected.
    announced_report_at = models.DateTimeField(null=True)
    # The time of the last report that is included in the image rows. If a release without images
    # applied a later report, the rows are rebuilt.
    images_report_at = models.DateTimeField(null=True)
    # The last time when the usage of a large number of workloads was stored.
    usage_stored_at = models.DateTimeField(null=True)
    # The time and the reason of the last collection failure. The collection is failing while this
    # time is newer than `last_received_at`. Otherwise, `collection_failing_since` belongs to a
    # resolved failure.
    collection_error_at = models.DateTimeField(null=True)
    collection_failing_since = models.DateTimeField(null=True)
    collection_error_reason = models.CharField(
        max_length=32, blank=True, choices=FAILURE_REASONS, **_EMPTY
    )
    collection_error_resource = models.CharField(max_length=MAX_RESOURCE, blank=True, **_EMPTY)
    collection_error_message = models.CharField(max_length=MAX_MESSAGE, blank=True, **_EMPTY)
    # The collector's name and version.
    collector_version = models.CharField(max_length=MAX_COLLECTOR_VERSION, blank=True, **_EMPTY)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = ClusterQuerySet.as_manager()
    #: Annotated by ``timed()``.
    read_at: dt.datetime

    class Meta:
        constraints = [
            models.UniqueConstraint(name="cluster_name_unique", fields=["name"]),
            models.CheckConstraint(name="cluster_name_present", condition=~Q(name="")),
            models.CheckConstraint(name="cluster_uid_present", condition=~Q(uid="")),
            models.CheckConstraint(
                name="cluster_report_interval_in_range",
                condition=Q(report_interval_seconds__range=(1, MAX_REPORT_INTERVAL)),
            ),
            models.CheckConstraint(
                name="cluster_report_whole_or_absent",
                condition=Q(last_report_at=None, last_received_at=None, last_snapshot_at=None)
                | Q(last_report_at__isnull=False, last_received_at__isnull=False),
            ),
            models.CheckConstraint(
                name="cluster_snapshot_not_after_report",
                condition=Q(last_snapshot_at=None) | Q(last_snapshot_at__lte=F("last_report_at")),
            ),
            models.CheckConstraint(
                name="cluster_failure_whole_or_absent",
                condition=Q(
                    collection_error_at=None,
                    collection_failing_since=None,
                    collection_error_reason="",
                )
                | Q(
                    collection_failing_since__lte=F("collection_error_at"),
                    collection_error_reason__in=[reason for reason, _ in FAILURE_REASONS],
                ),
            ),
            models.CheckConstraint(
                name="cluster_counts_not_negative",
                condition=Q(
                    workloads_unspecified__gte=0,
                    workloads_healthy__gte=0,
                    workloads_degraded__gte=0,
                    workloads_error__gte=0,
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def workload_counts(self) -> dict[str, int]:
        """Return the number of workloads, in total and by health."""
        counts = {
            "healthy": self.workloads_healthy,
            "degraded": self.workloads_degraded,
            "error": self.workloads_error,
            "unspecified": self.workloads_unspecified,
        }
        return {"total": sum(counts.values()), **counts}
