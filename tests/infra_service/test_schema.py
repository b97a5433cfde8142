"""The OpenAPI description, as the service gives it."""

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from django.test import Client

from infra_service.api.schema import ApiSchema


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    response = Client().get("/api/schema/")
    assert response.status_code == 200
    schema: dict[str, Any] = yaml.safe_load(response.content)
    return schema


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

    assert [p["name"] for p in operation["parameters"]] == ["filter", "page_size", "page_token"]
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


def test_lists_are_the_only_pages(described: dict[str, Any]) -> None:
    whoami = described["paths"]["/v1/whoami"]["get"]

    assert "parameters" not in whoami
    assert described["info"]["version"] == "1"
