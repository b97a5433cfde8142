"""An agent that reports the workloads of its cluster, and the answers that it gets."""

from __future__ import annotations

from typing import Any

from django.test import Client

from tests.conftest import error_reason
from tests.workloads.records import (
    stored,
)
from workloads.models import Cluster


class Agent:
    """An agent of one cluster."""

    def __init__(self, client: Client, cluster_id: object) -> None:
        self.client, self.path = client, f"/api/v1/clusters/{cluster_id}/workloads"

    def put(self, body: bytes, content_type: str = "application/json", **headers: str) -> Any:
        return self.client.put(self.path, body, content_type, headers=headers)

    def patch(self, body: bytes, content_type: str = "application/json", **headers: str) -> Any:
        return self.client.patch(self.path, body, content_type, headers=headers)


def violations(response: Any) -> list[tuple[str, str]]:
    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    found = response.json()["error"]["details"][1]["field_violations"]
    assert all(entry["description"] for entry in found)
    return [(entry["field"], entry["reason"]) for entry in found]


def nothing_is_stored(cluster: Cluster) -> bool:
    cluster.refresh_from_db()
    return not stored(cluster) and cluster.last_report_at is None
