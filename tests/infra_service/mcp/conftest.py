"""A client of the Model Context Protocol that posts raw messages, and data to ask about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from apikeys import actions
from apikeys.actors import Actor
from apikeys.scopes import Scope
from tests.conftest import ApiClient, ClientWith
from tests.states.conftest import Backend, named
from tests.states.indexed import index
from tests.states.samples import instance, resource, state
from tests.states.test_cluster_objects import deployment
from tests.workloads.records import apply, record, report
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster

STATELESS, WITH_INITIALIZE = "2026-07-28", "2025-11-25"
PREFIX = "io.modelcontextprotocol/"
ACCEPT = "application/json, text/event-stream"
READING = ("state:read", "cluster:read", "audit:read")
#: The largest response to a call of a tool.
MOST_BYTES = 8192


@dataclass
class Mcp:
    """Requests of one client, in one of the two eras."""

    client: Client
    version: str = STATELESS

    def send(self, method: str, params: Any = None, *, message_id: Any = 1, **headers: str) -> Any:
        params = {} if params is None else dict(params)
        given = {"accept": ACCEPT, "mcp-protocol-version": self.version}
        if self.version == STATELESS:
            meta = {f"{PREFIX}protocolVersion": self.version, f"{PREFIX}clientCapabilities": {}}
            params["_meta"] = meta
            given |= {"mcp-method": method, "mcp-name": params.get("name", "")}
        message = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}
        return self.raw(json.dumps(message), **{**given, **headers})

    def raw(self, body: str | bytes, **headers: str) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post("/mcp", body, "application/json", headers=given)

    def result(self, method: str, params: Any = None) -> Any:
        response = self.send(method, params)
        assert response.status_code == 200, response.content
        assert response["Content-Type"] == "application/json"
        return response.json()["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Return the answer of a tool."""
        response = self.send("tools/call", {"name": tool, "arguments": arguments})
        assert response.status_code == 200, response.content
        assert len(response.content) <= MOST_BYTES
        result = response.json()["result"]
        (content,) = result["content"]
        assert not result["isError"], content["text"]
        return json.loads(content["text"])

    def error(self, tool: str, **arguments: Any) -> str:
        """Return the message of a call that fails."""
        result = self.result("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"]
        text: str = result["content"][0]["text"]
        return text

    def all(self, tool: str, name: str, **arguments: Any) -> list[Any]:
        """Return the items of all answers."""
        items, cursor = [], {}
        while True:
            answer = self.call(tool, **arguments, **cursor)
            items += answer[name]
            if "next_cursor" not in answer:
                return items
            cursor = {"cursor": answer["next_cursor"]}


@pytest.fixture
def mcp(client_with: ClientWith) -> Mcp:
    return Mcp(client_with(*READING))


@pytest.fixture
def writer(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "state:write", "cluster:read")


BUCKET = {"id": "acme-logs", "arn": "arn:aws:s3:::acme-logs"}
AWS = 'provider["registry.terraform.io/hashicorp/aws"]'
SECRET_OUTPUT = "correct-horse-battery-staple-4711"


@pytest.fixture
def production(writer: ApiClient) -> Backend:
    """A state of network/production with a bucket, a Deployment and outputs; it is locked."""
    backend = Backend(writer)
    bucket = resource("logs", instance(BUCKET), type="aws_s3_bucket", provider=AWS)
    web = resource("web", instance(deployment("uid-web")), type="kubernetes_deployment_v1")
    outputs = {
        "url": {"value": "https://shop.example", "type": "string"},
        "password": {"value": SECRET_OUTPUT, "type": "string", "sensitive": True},
    }
    assert backend.push(state(bucket, web, outputs=outputs)).status_code == 200
    record = named(backend.record, "network", "production")
    type(record.component).objects.filter(pk=record.component_id).update(slug="network")
    type(record.environment).objects.filter(pk=record.environment_id).update(slug="production")
    index()
    assert backend.lock("0b8b2a52-0000-4000-8000-000000000002").status_code == 200
    return backend


@pytest.fixture
def fleet(db: None) -> Cluster:
    """A cluster whose workload ``web`` is unwell, and managed by ``production``."""
    cluster = Cluster.objects.create(name="prod-eu-1")
    unwell = {"health_status": HealthStatus.ERROR, "status_reason": "CrashLoopBackOff: app"}
    apply(cluster, report(0, record("web", **unwell), record("api")))
    return cluster


@pytest.fixture
def key(operator: Any) -> str:
    """The secret of an API key."""
    _, secret = actions.create_api_key(
        user_id=operator.pk,
        name="key",
        scopes=[Scope.STATE_READ],
        expires_at=None,
        actor=Actor(name="test"),
    )
    return secret
