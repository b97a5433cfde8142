"""The models of images by workload and by cluster, derived from the containers of workloads.

Each writer of workloads updates the rows in the same transaction
(``workloads.reporting.image_rows``). The rows copy the columns that lists need, so that a list
reads a single index. The tables have no foreign keys: during an upgrade, the previous release
deletes workloads and clusters without deleting their rows in these tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.db import models

from workloads.kubernetes.facts import MAX_NAME, MAX_NAMESPACE
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.images import MAX_DIGEST, MAX_REPOSITORY, MAX_TAG
from workloads.models.of_cluster import inside_clusters
from workloads.models.workloads import MAX_HEALTH_STATUS, MAX_KIND

if TYPE_CHECKING:
    from apikeys.bindings import Binding

#: The columns that identify an image, in the order of lists.
IMAGE = ("repository", "tag", "digest")


class WorkloadImage(models.Model):
    """A repository and a digest that a workload runs."""

    #: Columns compared in byte order, so that a prefix is a range.
    byte_ordered = frozenset({"repository", "digest", "namespace", "name", "kind"})
    #: Columns copied from the workload.
    copied = frozenset({"cluster_id", "health_status", "namespace", "name", "kind"})
    #: A column with few values. A list in a different order merges one part per value. This avoids
    #: another index, which each report would have to update.
    merged: ClassVar = {"health_status": tuple(health.value for health in HealthStatus)}

    pk = models.CompositePrimaryKey("workload_id", "number")
    workload_id = models.UUIDField()
    number = models.SmallIntegerField()
    repository = models.CharField(max_length=MAX_REPOSITORY)
    digest = models.CharField(max_length=MAX_DIGEST, blank=True)
    cluster_id = models.UUIDField()
    health_status = models.CharField(max_length=MAX_HEALTH_STATUS)
    namespace = models.CharField(max_length=MAX_NAMESPACE)
    name = models.CharField(max_length=MAX_NAME)
    kind = models.CharField(max_length=MAX_KIND)

    class Meta:
        indexes = [
            *(
                models.Index(
                    name=f"workloadimage_by_{column}",
                    fields=[
                        column, "health_status", "cluster_id", "namespace", "name", "kind",
                        "workload_id",
                    ],
                )
                for column in ("repository", "digest")
            ),
            models.Index(name="workloadimage_of_cluster", fields=["cluster_id", "repository"]),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.repository}@{self.digest}"


class ClusterImageQuerySet(models.QuerySet["ClusterImage"]):
    def inside(self, binding: Binding) -> ClusterImageQuerySet:
        return inside_clusters(self, binding, "cluster_id")


class ClusterImage(models.Model):
    """An image in a cluster, with the number of workloads that run it."""

    byte_ordered = frozenset(IMAGE)

    pk = models.CompositePrimaryKey("cluster_id", *IMAGE)
    cluster_id = models.UUIDField()
    # Includes the registry, such as docker.io/library/nginx.
    repository = models.CharField(max_length=MAX_REPOSITORY)
    tag = models.CharField(max_length=MAX_TAG, blank=True)
    digest = models.CharField(max_length=MAX_DIGEST, blank=True)
    workloads = models.IntegerField()

    objects = ClusterImageQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="clusterimage_is_of_some", condition=models.Q(workloads__gt=0)
            ),
        ]
        indexes = [
            # For lists over all clusters. The index contains the summed column.
            models.Index(name="clusterimage_by_name", fields=[*IMAGE, "cluster_id", "workloads"]),
            models.Index(
                name="clusterimage_by_digest", fields=["digest", "repository", "tag", "cluster_id"]
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository}:{self.tag}@{self.digest}"
