"""The OpenAPI description of changes."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.change_history.api.serializers import ChangeSerializer, ChangeSummarySerializer
from infra_service.change_history.summaries import LONGEST, MOST_GROUPS
from infra_service.lib.api.openapi_words import (
    answer_example,
    error_docs,
    list_schema,
    period_parameters,
    wrapped,
)
from states.api import samples
from states.api.states_openapi import A_STATE
from states.errors import StateNotFound

CHANGE: Final[dict[str, Any]] = {
    "id": "01944722-4f2c-7a3e-8000-0c3fd1a1b2c3",
    "occurred_at": samples.VERSION["created_at"],
    "kind": "RESOURCE",
    "action": "CHANGED",
    "address": 'module.storage.aws_s3_bucket.logs["eu"]',
    "previous_address": "",
    "type": "aws_s3_bucket",
    "provider": "registry.terraform.io/hashicorp/aws",
    "attributes": ["tags", "tags_all"],
    "before": "",
    "after": "",
    "problem": "",
    "state_id": samples.STATE["id"],
    "version_number": samples.VERSION["number"],
    "component_id": samples.COMPONENT["id"],
    "component_slug": samples.COMPONENT["slug"],
    "environment_id": samples.ENVIRONMENT["id"],
    "environment_slug": samples.ENVIRONMENT["slug"],
    "cluster_id": None,
    "cluster_name": None,
    "workload_id": None,
    "created_by": samples.VERSION["created_by"],
    "token_id": samples.VERSION["token_id"],
    "commit": "f3b9c1d0a7e24c55b1f0de0f7a5a6f0c2d9f1e34",
    "run_url": "https://github.com/acme/infra/actions/runs/42",
}

SUMMARY: Final[dict[str, Any]] = {
    "since": "2026-11-16T08:00:00.000000Z",
    "until": "2026-11-23T08:00:00.000000Z",
    "total": 7,
    "groups": [
        {
            "day": "2026-11-22",
            "kind": "RESOURCE",
            "environment_id": CHANGE["environment_id"],
            "environment_slug": CHANGE["environment_slug"],
            "action": "CHANGED",
            "changes": 5,
        },
        {
            "day": "2026-11-22",
            "kind": "WORKLOAD",
            "environment_id": None,
            "environment_slug": None,
            "action": "IMAGE_CHANGED",
            "changes": 2,
        },
    ],
}

changes_schema = extend_schema_view(
    list=list_schema(
        "change",
        "Changes to resources in all states and, with `cluster:read`, to workloads in all "
        "clusters, newest first. The list contains only changes within the caller's binding. The "
        "service stores resource changes within seconds of a push.",
        CHANGE,
    ),
)
of_state_schema = extend_schema_view(
    list=list_schema(
        "change",
        "Changes to resources in a state, newest first.",
        CHANGE,
        operation_id="list_state_changes",
        parameters=[A_STATE],
        responses={200: ChangeSerializer(many=True), **error_docs(StateNotFound)},
    ),
)
summary_schema = extend_schema(
    operation_id="summarize_changes",
    description="The number of changes that `GET /api/v1/changes` lists, by day, kind, "
    f"environment and action. A summary has at most {MOST_GROUPS:,} groups.",
    parameters=period_parameters(LONGEST),
    responses={200: wrapped("ChangeSummaryAnswer", "summary", ChangeSummarySerializer)},
    examples=[answer_example({"summary": SUMMARY})],
    filters=True,
)
