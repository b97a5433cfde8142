"""The cluster of a path, restricted to the caller's binding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apikeys.authentication import caller_of
from infra_service.lib.api.identifiers import parse_uuid
from workloads.errors import ClusterNotFound
from workloads.models import Cluster

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workloads.models import ClusterQuerySet


def find_cluster(request: Request, clusters: ClusterQuerySet, text: str) -> Cluster:
    """Return the cluster with this id.

    Raises:
        ClusterNotFound: the text is not an id, or the cluster is missing or outside the caller's
            binding.
    """
    cluster_id = parse_uuid(text)
    if cluster_id is None:
        raise ClusterNotFound
    try:
        return clusters.inside(caller_of(request).binding).get(pk=cluster_id)
    except Cluster.DoesNotExist as error:
        raise ClusterNotFound from error
