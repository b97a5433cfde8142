"""The clusters that ``sync_workloads`` collects into the service's database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from django.core.management.base import CommandError

from apikeys.actors import Actor
from workloads.collector import connect
from workloads.collector.connect import ConnectionSetupError
from workloads.collector.database import DatabaseDestination
from workloads.collector.targets import Target
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from workloads.collector.client import ClusterClient


log = structlog.get_logger("workloads.collector")


def registered_cluster(options: dict[str, Any]) -> Target:
    """Return the cluster that ``--cluster`` names.

    Raises:
        CommandError: the cluster is not registered.
        ConnectionSetupError: the credentials of the cluster are missing or invalid.
    """
    cluster = Cluster.objects.filter(name=options["cluster"]).first()
    if cluster is None:
        raise CommandError(
            f"no cluster is registered as {options['cluster']!r}; register it in the admin or with "
            "POST /api/v1/clusters"
        )
    return _target(cluster, connect.from_options(options, cluster.name))


def registered_clusters(
    kubeconfig: str | None,
    skipped: Callable[[str], None],
    failed: Callable[[str, Exception], None],
) -> list[Target]:
    """Return the registered clusters whose names match contexts of the kubeconfig.

    Raises:
        ConnectionSetupError: the kubeconfig is missing or invalid.
    """
    names, _current = connect.contexts(kubeconfig)
    clusters = Cluster.objects.order_by("name")
    for cluster in clusters.exclude(name__in=names):
        skipped(f"{cluster.name}: skipped, the kubeconfig has no context of this name")
    targets = []
    for cluster in clusters.filter(name__in=names):
        try:
            client = connect.from_kubeconfig(kubeconfig, cluster.name)
        except ConnectionSetupError as error:
            failed(cluster.name, error)
        except Exception as error:
            log.exception("kubeconfig_unreadable", cluster=cluster.name)
            failed(cluster.name, error)
        else:
            targets.append(_target(cluster, client))
    return targets


def _target(cluster: Cluster, client: ClusterClient) -> Target:
    destination = DatabaseDestination(cluster.pk, Actor.of_command("sync_workloads"))
    return Target(cluster.name, client, destination, cluster.report_interval_seconds)
