"""The models of clusters, workloads, images and history."""

from workloads.models.clusters import Cluster, ClusterQuerySet
from workloads.models.history import ReportGap, Transition
from workloads.models.images import ClusterImage, WorkloadImage
from workloads.models.workloads import (
    HEALTH_STATUSES,
    KINDS,
    Workload,
    WorkloadQuerySet,
)

__all__ = [
    "HEALTH_STATUSES",
    "KINDS",
    "Cluster",
    "ClusterImage",
    "ClusterQuerySet",
    "ReportGap",
    "Transition",
    "Workload",
    "WorkloadImage",
    "WorkloadQuerySet",
]
