"""The tables of workloads: clusters, what runs in them, and what became of it."""

from workloads.models.clusters import MAX_COLLECTOR_VERSION, Cluster, ClusterQuerySet
from workloads.models.history import ReportGap, Transition
from workloads.models.images import ClusterImage, WorkloadImage
from workloads.models.workloads import (
    HEALTH_STATUSES,
    KINDS,
    MAX_NAME,
    MAX_NAMESPACE,
    MAX_STATUS_REASON,
    Workload,
    WorkloadQuerySet,
)

__all__ = [
    "HEALTH_STATUSES",
    "KINDS",
    "MAX_COLLECTOR_VERSION",
    "MAX_NAME",
    "MAX_NAMESPACE",
    "MAX_STATUS_REASON",
    "Cluster",
    "ClusterImage",
    "ClusterQuerySet",
    "ReportGap",
    "Transition",
    "Workload",
    "WorkloadImage",
    "WorkloadQuerySet",
]
