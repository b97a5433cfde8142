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


def cluster_of_path(request: Request, text: str) -> ClusterQuerySet:
    """Return a query for the cluster, which is empty outside the caller's binding.

    Raises:
        ClusterNotFound: the text is not an id.
    """
    found = parse_uuid(text)
    if found is None:
        raise ClusterNotFound
    return Cluster.objects.inside(caller_of(request).binding).filter(pk=found)
