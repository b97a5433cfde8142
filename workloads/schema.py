"""How clusters and workloads are described in OpenAPI."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)

from apikeys.schema import resource_schema
from workloads.serializers import ClusterSerializer

_CLUSTER_ID = OpenApiParameter(
    "cluster_id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The cluster."
)
_deletion = extend_schema_view(
    destroy=extend_schema(
        operation_id="delete_cluster", responses={204: OpenApiResponse(None, "Deleted.")}
    )
)


def clusters_schema(viewset: type) -> type:
    """Describe the cluster's viewset."""
    described: type = resource_schema("cluster", ClusterSerializer)(_deletion(viewset))
    return described


workloads_schema = extend_schema_view(
    list=extend_schema(operation_id="list_workloads", parameters=[_CLUSTER_ID])
)
