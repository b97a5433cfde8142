"""One pass over a cluster: every page is reduced as it comes, and dropped."""

from __future__ import annotations

import dataclasses
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog

from workloads.collector.client import Resource
from workloads.collector.errors import RefusedError
from workloads.collector.metrics import PodUsage
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.raw import child, text
from workloads.kubernetes.snapshot import SnapshotBuilder

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from workloads.collector.client import ClusterClient
    from workloads.kubernetes.raw import JsonObject
    from workloads.kubernetes.records import WorkloadRecord

    #: Called with a resource's name, how many of it were read, and how many are left if known.
    Progress: TypeAlias = Callable[[str, int, int | None], None]

log = structlog.get_logger("workloads.collector")

WORKLOADS: Final = {
    WorkloadKind.DEPLOYMENT: Resource("/apis/apps/v1/deployments"),
    WorkloadKind.STATEFUL_SET: Resource("/apis/apps/v1/statefulsets"),
    WorkloadKind.DAEMON_SET: Resource("/apis/apps/v1/daemonsets"),
}
REPLICASETS: Final = Resource("/apis/apps/v1/replicasets", metadata_only=True)
PODS: Final = Resource("/api/v1/pods")


def read_cluster(
    client: ClusterClient, as_of: dt.datetime, progress: Progress
) -> list[WorkloadRecord]:
    """Return every workload as it was at `as_of` (aware), when the lists began.

    Raises:
        KubernetesError: a list failed or broke off; what was read of it is worth nothing.
    """
    usage = PodUsage(client)
    builder = SnapshotBuilder(usage)
    for kind, resource in WORKLOADS.items():
        for raw in objects(client, resource, progress):
            builder.add_workload(raw, kind)
    for raw in objects(client, REPLICASETS, progress):
        builder.add_replicaset(raw)
    for raw in objects(client, PODS, progress):
        builder.add_pod(raw)
    records = builder.records(as_of)
    return [_unmeasured(record) for record in records] if usage.lost else list(records)


def objects(client: ClusterClient, resource: Resource, progress: Progress) -> Iterator[JsonObject]:
    """Yield a list's objects; the errors are those of ``read_cluster``."""
    done = 0
    for page in client.pages(resource):
        yield from page.objects()
        done += len(page.items or ())
        progress(resource.name, done, page.metadata.remaining_item_count)


def cluster_uid(client: ClusterClient) -> str:
    """Return what tells the cluster from every other: its kube-system namespace's uid.

    Empty when the collector may not read it; then nothing guards against the wrong cluster.

    Raises:
        KubernetesError: for any other reason than that.
    """
    try:
        namespace: JsonObject = client.get("/api/v1/namespaces/kube-system")
    except RefusedError as error:
        if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise
        log.warning("cluster_uid_unknown", error=str(error))
        return ""
    return text(child(namespace, "metadata"), "uid")


def _unmeasured(record: WorkloadRecord) -> WorkloadRecord:
    return dataclasses.replace(record, cpu_used_millicores=None, memory_used_bytes=None)
