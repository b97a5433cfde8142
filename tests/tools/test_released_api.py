"""The HTTP API since the last release: its clients keep working (docs/reference/stability.md)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from tests.gate import OPENAPI
from tools.upgrades.api import ACCEPTED, FILE, breaks, reduced

RELEASED: dict[str, Any] = json.loads(FILE.read_text())


def test_the_api_keeps_the_promises_of_the_last_release() -> None:
    current = reduced(yaml.load(OPENAPI.read_text(), yaml.CSafeLoader))

    found = breaks(RELEASED, current)

    assert set(found) == ACCEPTED.keys(), "docs/reference/stability.md says what to do"
    assert all(reason.endswith(".") for reason in ACCEPTED.values())


@pytest.fixture
def changed() -> dict[str, Any]:
    return copy.deepcopy(RELEASED)


def schema(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = document["components"]["schemas"][name]
    return found


def test_compatible_changes(changed: dict[str, Any]) -> None:
    changed["paths"]["/api/v1/new"] = changed["paths"]["/api/v1/clusters"]
    schema(changed, "Cluster")["properties"]["new"] = {"type": "string"}
    schema(changed, "Cluster")["required"].append("new")
    schema(changed, "ApiKeyStatus")["enum"].append("API_KEY_STATUS_NEW")
    listing = changed["paths"]["/api/v1/clusters"]["get"]
    listing["parameters"].append({"in": "query", "name": "new", "schema": {"type": "string"}})

    assert breaks(RELEASED, changed) == []


def test_removed_operations_parameters_and_statuses_are_reported(changed: dict[str, Any]) -> None:
    clusters = changed["paths"]["/api/v1/clusters"]
    clusters["get"]["parameters"] = [
        parameter for parameter in clusters["get"]["parameters"] if parameter["name"] != "filter"
    ]
    clusters["post"]["responses"] = {"200": clusters["post"]["responses"]["201"]}
    del changed["paths"]["/healthz"]

    found = breaks(RELEASED, changed)

    assert "removed: GET /healthz" in found
    assert "removed: GET /api/v1/clusters query filter: string" in found
    assert "removed: POST /api/v1/clusters 201" in found


def test_removed_fields_values_and_types_are_reported(changed: dict[str, Any]) -> None:
    del schema(changed, "Cluster")["properties"]["name"]
    schema(changed, "ApiKeyStatus")["enum"].remove("API_KEY_STATUS_EXPIRED")
    schema(changed, "ApiKey")["properties"]["name"]["type"] = ["string", "null"]
    schema(changed, "ApiKey")["required"].remove("created_at")

    found = breaks(RELEASED, changed)

    assert "removed: GET /api/v1/clusters/{id} 200 response.cluster.name: string" in found
    assert (
        'removed: GET /v1/api-keys/{id} 200 response.api_key.status = "API_KEY_STATUS_EXPIRED"'
        in found
    )
    assert "added: GET /v1/api-keys/{id} 200 response.api_key.name: null" in found
    assert "removed: GET /v1/api-keys/{id} 200 response.api_key.created_at required" in found


def test_new_requirements_are_reported(changed: dict[str, Any]) -> None:
    listing = changed["paths"]["/api/v1/clusters"]["get"]
    new = {"in": "query", "name": "new", "required": True, "schema": {"type": "string"}}
    listing["parameters"].append(new)
    body = changed["paths"]["/api/v1/clusters"]["post"]["requestBody"]
    (content,) = body["content"].values()
    wrapper = schema(changed, content["schema"]["$ref"].rpartition("/")[2])
    wrapper["properties"]["new"] = {"type": "string"}
    wrapper["required"].append("new")

    found = breaks(RELEASED, changed)

    assert "added: GET /api/v1/clusters query new required" in found
    assert "added: POST /api/v1/clusters request.new required" in found
    assert len(found) == 2


def test_a_request_may_demand_less(changed: dict[str, Any]) -> None:
    body = changed["paths"]["/api/v1/clusters"]["post"]["requestBody"]
    (content,) = body["content"].values()
    wrapper = schema(changed, content["schema"]["$ref"].rpartition("/")[2])
    wrapper["required"] = []

    assert breaks(RELEASED, changed) == []
