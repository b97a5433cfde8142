"""``/metrics``: access, and the counting of requests."""

import ipaddress
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests.conftest import ClientWith, error_reason
from tests.infra_service.outage import database_is_gone
from tests.support.figures import Since, parsed, value

LATENCY = "django_http_requests_latency_seconds_by_view_method"
RESPONSES = "django_http_responses_total_by_status_view_method_total"


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_this_machine_may(client: Client, db: None, path: str, address: str) -> None:
    answer = client.get(path, REMOTE_ADDR=address, headers={"Accept": "text/plain"})

    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    assert value(parsed(answer.text), "infra_database_up") == 1


@pytest.mark.parametrize("address", ["10.1.2.3", "::2", "::ffff:10.1.2.3", "", "unix"])
def test_unlisted_address_gets_403(client: Client, db: None, address: str) -> None:
    answer = client.get("/metrics", REMOTE_ADDR=address)

    assert (answer.status_code, error_reason(answer)) == (403, "PERMISSION_DENIED")
    assert b"infra_" not in answer.content


OF_PROXIES = {
    "X-Forwarded-For": "127.0.0.1",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "infra.example",
    "X-Real-IP": "127.0.0.1",
    "Forwarded": "for=127.0.0.1",
    "Via": "1.1 proxy",
}


@pytest.mark.parametrize("name", OF_PROXIES)
@pytest.mark.parametrize("behind_proxy", [False, True])
def test_metrics_are_refused_through_a_proxy(
    client: Client, db: None, settings: Any, name: str, behind_proxy: bool
) -> None:
    settings.BEHIND_TLS_PROXY = behind_proxy

    answer = client.get("/metrics", headers={name: OF_PROXIES[name]})

    assert (answer.status_code, error_reason(answer)) == (403, "PERMISSION_DENIED")


def test_setting_enables_metrics(client: Client, db: None, settings: Any) -> None:
    settings.METRICS_NETWORKS = [ipaddress.ip_network("10.1.0.0/16")]
    assert client.get("/metrics", REMOTE_ADDR="10.1.2.3").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="10.2.2.3").status_code == 403
    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 403

    settings.METRICS_NETWORKS = []
    assert client.get("/metrics", REMOTE_ADDR="10.1.2.3").status_code == 403


def test_a_scrape_comes_to_an_address_and_without_tls(
    client: Client, db: None, settings: Any
) -> None:
    settings.SECURE_SSL_REDIRECT = True

    assert client.get("/metrics", headers={"Host": "10.1.2.3:8000"}).status_code == 200


def test_metrics_accept_only_get(client: Client) -> None:
    answer = client.post("/metrics")

    assert (answer.status_code, error_reason(answer)) == (405, "METHOD_NOT_ALLOWED")


def test_metrics_work_without_the_database(client: Client, db: None) -> None:
    with database_is_gone():
        answer = client.get("/metrics")

    assert answer.status_code == 200
    assert "infra_database_up 0.0\n" in answer.text
    assert "infra_authentications_total{" in answer.text
    assert "infra_state_locks" not in answer.text


def test_number_of_queries_of_a_scrape_is_constant(
    client: Client, db: None, django_assert_num_queries: Any
) -> None:
    """Locks, freezes, failing checks, states encrypted by clients or missing from the index;
    clusters, housekeeping and webhooks.

    On PostgreSQL also the partitions of the audit log.
    """
    with django_assert_num_queries(13 if connection.vendor == "postgresql" else 12):
        client.get("/metrics")


def test_a_request(client_with: ClientWith) -> None:
    client, counted = client_with("state:read"), Since()

    client.get("/api/v1/states")

    assert counted(RESPONSES, status="200", view="state-list", method="GET") == 1
    assert counted(LATENCY + "_count", view="state-list", method="GET") == 1
    assert 0 < counted(LATENCY + "_sum", view="state-list", method="GET") < 60
    assert counted(LATENCY + "_bucket", view="state-list", method="GET", le="+Inf") == 1


def test_labels_are_bounded(client: Client, db: None) -> None:
    """All invalid values from clients share a single series."""
    counted = Since()

    for n in range(3):
        client.get(f"/nothing/{n}")
        client.generic(f"METHOD{n}", "/healthz")

    nothing = {"view": "<unnamed view>", "method": "GET"}
    assert counted(RESPONSES, status="404", **nothing) == 3
    assert counted("infra_errors_total", reason="NOT_FOUND", **nothing) == 3
    odd = {"view": "healthz", "method": "<invalid method>"}
    assert counted(RESPONSES, status="405", **odd) == 3
    assert counted("infra_errors_total", reason="METHOD_NOT_ALLOWED", **odd) == 3
