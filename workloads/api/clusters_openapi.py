"""The OpenAPI description of clusters."""

from __future__ import annotations

from typing import Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from apikeys.errors import BindingInsufficient
from infra_service.lib.api.openapi_words import resource_schema
from workloads.api import samples
from workloads.api.cluster_serializers import ClusterSerializer
from workloads.errors import ClusterExists

CLUSTER_ID: Final = OpenApiParameter(
    "cluster_id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The id of the cluster."
)

clusters_schema = resource_schema(
    "cluster",
    "Clusters within the caller's binding.",
    ClusterSerializer,
    samples.CLUSTER,
    create_errors=(ClusterExists, BindingInsufficient),
    change_errors=(ClusterExists,),
    destroy=extend_schema(
        operation_id="delete_cluster", responses={204: OpenApiResponse(None, "Deleted.")}
    ),
)
