"""Which images run where: rows that follow from the containers of the workloads.

Whoever writes workloads keeps them, in the same transaction (``workloads.reporting.image_rows``).
They copy what they need, so that a list of workloads is read in an index of theirs. No constraint
ties them to what they are copied from: the release before deletes that, and knows them not.
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

#: What tells an image from others, and the order of their list.
IMAGE = ("repository", "tag", "digest")


class WorkloadImage(models.Model):
    """A repository and a digest that a workload runs."""

    #: Columns in the order of bytes, in which what begins with a text is a range.
    byte_ordered = frozenset({"repository", "digest", "namespace", "name", "kind"})
    #: Columns that are those of the workload.
    copied = frozenset({"cluster_id", "health_status", "namespace", "name", "kind"})
    #: A column of so few values that a list which is not ordered by it is merged from one part of
    #: each, instead of having an index of its own, that each report would pay for.
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
        """Those of the clusters that a token with this binding sees."""
        return inside_clusters(self, binding, "cluster_id")


class ClusterImage(models.Model):
    """An image that runs in a cluster, and how many of its workloads run it."""

    byte_ordered = frozenset(IMAGE)

    pk = models.CompositePrimaryKey("cluster_id", *IMAGE)
    cluster_id = models.UUIDField()
    # With its registry, such as docker.io/library/nginx.
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
            # Of all clusters: what is added up is in the index.
            models.Index(name="clusterimage_by_name", fields=[*IMAGE, "cluster_id", "workloads"]),
            models.Index(
                name="clusterimage_by_digest", fields=["digest", "repository", "tag", "cluster_id"]
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository}:{self.tag}@{self.digest}"
