"""Questions of platform engineers, each answered in at most two calls."""

from __future__ import annotations

import json

import pytest

from tests.infra_service.mcp.conftest import Mcp
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import instance, resource, state
from workloads.models import Cluster, Workload


@pytest.fixture(autouse=True)
def data(production: Backend, fleet: Cluster) -> None:
    """States and workloads to ask about."""


def test_which_buckets_do_i_have(mcp: Mcp) -> None:
    (bucket,) = mcp.call("list_resources", type="aws_s3_bucket")["resources"]

    assert bucket["address"] == "aws_s3_bucket.logs"
    assert (bucket["component_slug"], bucket["environment_slug"]) == ("network", "production")


def test_what_is_this_arn_for(mcp: Mcp) -> None:
    (found,) = mcp.call("find_resource", identifier="arn:aws:s3:::acme-logs")["resources"]

    assert found["address"] == "aws_s3_bucket.logs"


def test_who_holds_a_lock_in_production(mcp: Mcp) -> None:
    (locked,) = mcp.call("list_locks", environment="production")["states"]

    assert locked["lock"]["who"]
    assert locked["lock"]["acquired_at"]
    assert mcp.call("list_locks", environment="staging")["states"] == []


def test_what_changed_in_production_since_friday(mcp: Mcp, production: Backend) -> None:
    since = f"field['occurred_at'] >= '{production.record.created_at.isoformat()}'"

    changes = mcp.call("list_changes", environment="production", filter=since)["changes"]

    assert [(each["action"], each["address"]) for each in changes] == [
        ("ADDED", "aws_s3_bucket.logs"),
        ("ADDED", "kubernetes_deployment_v1.web"),
    ]
    assert {each["created_by"] for each in changes} == {"operator"}


def test_what_is_unwell_and_which_state_manages_it(mcp: Mcp, production: Backend) -> None:
    unwell = mcp.call("list_unwell_workloads")["workloads"]
    assert [(each["name"], each["status_reason"]) for each in unwell] == [
        ("web", "CrashLoopBackOff: app")
    ]

    pairs = [{"cluster_id": each["cluster_id"], "workload_id": each["id"]} for each in unwell]
    (web,) = mcp.call("find_managing_states", workloads=pairs)["workloads"]

    (managing,) = web["managed_by"]
    assert managing["state_id"] == str(production.record.pk)
    assert managing["address"] == "kubernetes_deployment_v1.web"


def test_where_does_an_image_run(mcp: Mcp) -> None:
    Workload.objects.filter(name="api").update(health_status="HEALTHY")

    (workload,) = mcp.call("find_image", repository="registry.example/api")["workloads"]

    assert (workload["cluster_name"], workload["name"]) == ("prod-eu-1", "api")


def test_who_uses_a_provider(mcp: Mcp) -> None:
    counts = mcp.call("list_providers")["providers"]
    name = next(each["provider"] for each in counts if each["provider"].endswith("/aws"))

    (user,) = mcp.call("list_resources", provider=name)["resources"]

    assert user["component_slug"] == "network"


def test_who_reads_the_outputs_of_a_state(mcp: Mcp, production: Backend, writer: object) -> None:
    config = {"address": f"http://testserver{production.path}"}
    reading = resource(
        "network",
        instance({"backend": "http", "config": {"value": config, "type": ["object", {}]}}),
        mode="data",
        type="terraform_remote_state",
        provider='provider["terraform.io/builtin/terraform"]',
    )
    assert Backend(writer).push(state(reading)).status_code == 200  # type: ignore[arg-type]
    index()

    (found,) = mcp.call("list_states", component="network")["states"]
    answer = mcp.call("list_dependencies", state_id=found["id"])

    (reader,) = answer["read_by"]
    assert reader["address"] == "data.terraform_remote_state.network"
    assert answer["reads"] == []


def test_who_pushed_last_to_production(mcp: Mcp) -> None:
    (found,) = mcp.call("list_states", environment="production")["states"]

    (event,) = mcp.call("search_audit_log", action="state.push", resource_id=found["id"])[
        "audit_events"
    ]

    assert event["actor_name"] == "operator"


def test_what_is_the_address_of_the_shop(mcp: Mcp) -> None:
    (found,) = mcp.call("list_states", environment="production")["states"]

    outputs = mcp.call("list_outputs", state_id=found["id"])["outputs"]

    assert json.dumps({"name": "url", "value": "https://shop.example"})[1:-1] in json.dumps(
        [{"name": each["name"], "value": each.get("value")} for each in outputs]
    )
