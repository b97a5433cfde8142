"""``/healthz`` and ``/readyz``."""

import pytest
from django.db import connection
from django.test import Client

from infra_service import __version__
from infra_service.operations import health
from tests.conftest import error_reason
from tests.infra_service.outage import database_is_gone


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("path", ["/healthz", "/healthz/"])
def test_health_is_ok_without_a_database(client: Client, path: str) -> None:
    response = client.get(path)

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/readyz", "/readyz/"])
def test_migrated_service_is_ready(client: Client, db: None, path: str) -> None:
    response = client.get(path)

    assert response.status_code == 200
    assert response.json() == {"status": "ok", "version": __version__}


def test_unmigrated_service_is_not_ready(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_seen_migrated", False)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'states'")

    response = client.get("/readyz")

    assert (response.status_code, error_reason(response)) == (503, "MIGRATIONS_PENDING")
    assert response["Retry-After"] == "5"


def test_service_without_the_database_is_not_ready(client: Client, db: None) -> None:
    with pytest.MonkeyPatch.context() as patch, database_is_gone():
        # On PostgreSQL it has a connection of its own.
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", "1")
        response = client.get("/readyz")

    assert (response.status_code, error_reason(response)) == (503, "DATABASE_UNAVAILABLE")
    assert response["Retry-After"] == "2"
    assert response.json()["error"]["status"] == "UNAVAILABLE"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_other_methods_get_405(client: Client, path: str) -> None:
    response = client.post(path)

    assert (response.status_code, error_reason(response)) == (405, "METHOD_NOT_ALLOWED")
