"""``GET …/workloads/{id}/transitions`` and ``…/availability``."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.utils import timezone

from tests.conftest import ClientWith, error_reason
from tests.workloads.records import apply, at, place, record, report, stored
from tests.workloads.test_transitions import DOWN
from workloads.models import Cluster, Workload

SINCE, UNTIL = "2026-11-20T12:00:00Z", "2026-11-20T12:10:00Z"


@pytest.fixture
def flapping(cluster: Cluster) -> Workload:
    """A workload that was down for the second of five minutes."""
    for minute in range(6):
        down = DOWN if minute in (1, 2) else {}
        apply(cluster, report(60 * minute, record(**down)))
    return stored(cluster)[place()]


def path(workload: Workload, what: str) -> str:
    return f"/api/v1/clusters/{workload.cluster_id}/workloads/{workload.pk}/{what}"


def test_transitions_are_listed(client_with: ClientWith, flapping: Workload) -> None:
    response = client_with("cluster:read").get(path(flapping, "transitions"))

    assert response.status_code == 200
    assert response.json() == {
        "transitions": [
            {
                "number": 3,
                "type": "CHANGED",
                "at": "2026-11-20T12:03:00.000000Z",
                "from_health_status": "ERROR",
                "to_health_status": "HEALTHY",
                "status_reason": "",
            },
            {
                "number": 2,
                "type": "CHANGED",
                "at": "2026-11-20T12:01:00.000000Z",
                "from_health_status": "HEALTHY",
                "to_health_status": "ERROR",
                "status_reason": "CrashLoopBackOff",
            },
            {
                "number": 1,
                "type": "APPEARED",
                "at": "2026-11-20T12:00:00.000000Z",
                "from_health_status": None,
                "to_health_status": "HEALTHY",
                "status_reason": "",
            },
        ],
        "next_page_token": "",
    }


def test_pages_contain_every_item_once(client_with: ClientWith, flapping: Workload) -> None:
    client, numbers, token = client_with("cluster:read"), [], ""
    for _ in range(3):
        page = client.get(
            path(flapping, "transitions"), {"page_size": 1, "page_token": token}
        ).json()
        numbers += [transition["number"] for transition in page["transitions"]]
        token = page["next_page_token"]
    assert (numbers, token) == ([3, 2, 1], "")
    oldest = client.get(path(flapping, "transitions"), {"order_by": "number"}).json()
    assert [transition["number"] for transition in oldest["transitions"]] == [1, 2, 3]


def test_history_of_a_deleted_workload_is_available(
    client_with: ClientWith, cluster: Cluster, flapping: Workload
) -> None:
    apply(cluster, report(360))
    client = client_with("cluster:read")

    newest = client.get(path(flapping, "transitions")).json()["transitions"][0]
    assert (newest["type"], newest["to_health_status"]) == ("DISAPPEARED", None)
    body = client.get(path(flapping, "availability"), {"since": SINCE, "until": UNTIL}).json()
    assert body["availability"]["healthy_seconds"] == 240
    assert body["availability"]["unobserved_seconds"] == 240


def test_availability_is_computed(client_with: ClientWith, flapping: Workload) -> None:
    response = client_with("cluster:read").get(
        path(flapping, "availability"), {"since": SINCE, "until": UNTIL}
    )

    assert response.status_code == 200
    assert response.json() == {
        "availability": {
            "since": "2026-11-20T12:00:00.000000Z",
            "until": "2026-11-20T12:10:00.000000Z",
            "healthy_ratio": 0.6,
            "healthy_seconds": 180.0,
            "degraded_seconds": 0.0,
            "error_seconds": 120.0,
            "unspecified_seconds": 0.0,
            "unobserved_seconds": 300.0,
        }
    }


def test_default_window_is_seven_days(client_with: ClientWith, cluster: Cluster) -> None:
    now = timezone.now()
    seconds = (now - at(0)).total_seconds()
    apply(cluster, report(seconds - 90, record()))
    apply(cluster, report(seconds - 30, record()))
    one = stored(cluster)[place()]

    body = client_with("cluster:read").get(path(one, "availability")).json()["availability"]
    assert (body["healthy_ratio"], body["healthy_seconds"]) == (1.0, 60.0)
    assert body["healthy_seconds"] + body["unobserved_seconds"] == 7 * 86400


@pytest.mark.both
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"since": "yesterday"}, "since"),
        ({"since": ""}, "since"),
        ({"until": "2026-11-20T12:00:00"}, "until"),
        ({"until": "2026-02-30T12:00:00Z"}, "until"),
        ({"since": UNTIL, "until": SINCE}, "since"),
        ({"since": SINCE, "until": SINCE}, "since"),
        ({"since": "2026-08-20T12:00:00Z", "until": SINCE}, "since"),
        ({"since": "0001-01-01T00:00:00Z"}, "since"),
        ({"until": "0001-01-01T00:00:00Z"}, "since"),
        ({"from": SINCE}, "from"),
    ],
)
def test_wrong_windows_are_rejected(
    client_with: ClientWith, flapping: Workload, query: dict[str, str], field: str
) -> None:
    response = client_with("cluster:read").get(path(flapping, "availability"), query)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    (details,) = [d for d in response.json()["error"]["details"] if "field_violations" in d]
    assert [violation["field"] for violation in details["field_violations"]] == [field]


@pytest.mark.parametrize("what", ["transitions", "availability"])
def test_unknown_workloads_and_clusters_get_404(
    client_with: ClientWith, cluster: Cluster, flapping: Workload, what: str
) -> None:
    client = client_with("cluster:read")
    other = Cluster.objects.create(name="other")
    absent: list[tuple[Any, Any, str]] = [
        (cluster.pk, uuid.uuid4(), "WORKLOAD_NOT_FOUND"),
        (cluster.pk, "nonsense", "WORKLOAD_NOT_FOUND"),
        (other.pk, flapping.pk, "WORKLOAD_NOT_FOUND"),
        (uuid.uuid4(), flapping.pk, "CLUSTER_NOT_FOUND"),
        ("nonsense", flapping.pk, "CLUSTER_NOT_FOUND"),
    ]
    for cluster_id, workload_id, reason in absent:
        response = client.get(f"/api/v1/clusters/{cluster_id}/workloads/{workload_id}/{what}")
        assert (response.status_code, error_reason(response)) == (404, reason)
    # The history is bound to its cluster, also when the workload is gone.
    apply(cluster, report(360))
    response = client.get(f"/api/v1/clusters/{other.pk}/workloads/{flapping.pk}/{what}")
    assert (response.status_code, error_reason(response)) == (404, "WORKLOAD_NOT_FOUND")


@pytest.mark.parametrize("what", ["transitions", "availability"])
def test_scope_and_binding_are_required(
    client_with: ClientWith, flapping: Workload, what: str
) -> None:
    elsewhere = client_with("cluster:read", bound_cluster_id=uuid.uuid4())
    response = elsewhere.get(path(flapping, what))
    assert (response.status_code, error_reason(response)) == (404, "CLUSTER_NOT_FOUND")
    response = client_with("cluster:report").get(path(flapping, what))
    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
    bound = client_with("cluster:read", bound_cluster_id=flapping.cluster_id)
    assert bound.get(path(flapping, what)).status_code == 200
