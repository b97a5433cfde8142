"""The OpenAPI description, as the service gives it."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from infra_service import __version__
from infra_service.lib.api import orders
from infra_service.openapi import pages
from infra_service.openapi.schema import ApiSchema


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    response = Client().get("/api/schema/")
    assert response.status_code == 200
    schema: dict[str, Any] = yaml.load(response.content, yaml.CSafeLoader)
    return schema


def test_an_order_whose_values_change_is_described() -> None:
    view = SimpleNamespace(page_key=("id",), other_keys=[("name", "id")], moving_orders=("name",))
    assert "ordered by `name`, an item whose value" in orders.described(view)["description"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/api-keys", "api_keys"),
        ("/v1/access-tokens", "access_tokens"),
        ("/api/v1/audit-events", "audit_events"),
    ],
)
def test_a_list_is_described_under_its_name(
    described: dict[str, Any], path: str, name: str
) -> None:
    operation = described["paths"][path]["get"]
    (content,) = operation["responses"]["200"]["content"].values()
    schema = described["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]

    names = [parameter["name"] for parameter in operation["parameters"]]
    assert names == ["filter", "order_by", "page_size", "page_token"]
    assert not any(parameter["required"] for parameter in operation["parameters"])
    assert list(schema["properties"]) == [name, "next_page_token"]
    assert schema["required"] == [name, "next_page_token"]


def test_every_path_is_described_once_and_without_a_final_slash(described: dict[str, Any]) -> None:
    paths = list(described["paths"])

    assert not any(path.endswith("/") for path in paths)
    assert {
        "/v1/api-keys/{id}:rotate",
        "/v1/api-keys/{id}:revoke",
        "/v1/access-tokens/{id}:revoke",
        "/v1/whoami",
    } <= set(paths)


def test_a_list_without_pages_can_be_described() -> None:
    schema = ApiSchema()
    schema.view = SimpleNamespace()

    assert schema._get_paginator() is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accept", "media_type", "start"),
    [
        ("*/*", "application/vnd.oai.openapi", b"openapi: 3.1.0\n"),
        ("application/yaml", "application/yaml", b"openapi: 3.1.0\n"),
        ("application/json", "application/json", b'{\n    "openapi": "3.1.0",'),
        (
            "application/vnd.oai.openapi+json",
            "application/vnd.oai.openapi+json",
            b'{\n    "openapi": "3.1.0",',
        ),
    ],
)
def test_formats_are_described(
    accept: str, media_type: str, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is made once; nothing that is asked changes it."""
    first = Client().get("/api/schema", headers={"Accept": accept})
    monkeypatch.setattr(SchemaGenerator, "get_schema", None)

    again = Client().get("/api/schema/?lang=de&version=7", headers={"Accept": accept})

    assert first.headers["Content-Type"] == media_type
    assert first.content.startswith(start)
    assert again.content == first.content


@pytest.mark.slow
def test_served_schema_matches_the_document() -> None:
    document = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.yaml"

    assert Client().get("/api/schema").content == document.read_bytes()


def test_concurrent_first_requests_generate_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    generated: list[None] = []

    def generate(_generator: SchemaGenerator, **_options: Any) -> dict[str, Any]:
        generated.append(None)
        time.sleep(0.2)
        return {"openapi": "3.1.0"}

    monkeypatch.setattr(SchemaGenerator, "get_schema", generate)
    pages._written.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: Client().get("/api/schema/"), range(4)))
    pages._written.cache_clear()

    assert [answer.status_code for answer in answers] == [200] * 4
    assert len(generated) == 1


def test_lists_are_the_only_pages(described: dict[str, Any]) -> None:
    whoami = described["paths"]["/v1/whoami"]["get"]

    assert "parameters" not in whoami
    assert described["info"]["version"] == __version__


def test_a_client_may_send_null_for_the_optional_members_of_a_lock(
    described: dict[str, Any],
) -> None:
    schemas = described["components"]["schemas"]
    members = schemas["NewLockInfo"]["properties"]

    assert {"type": "null"} in schemas["LockTime"]["anyOf"]
    texts = [name for name, member in members.items() if member.get("type") == ["string", "null"]]
    assert {*members} - {*texts} == {"ID", "Created"}
