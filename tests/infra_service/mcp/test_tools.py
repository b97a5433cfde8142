"""The tools: scopes, bindings, limits of answers, and the same rows as the API."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from apikeys.models import AccessToken, AuditEvent
from filterlang.parser import parse
from infra_service.lib.api import limits
from infra_service.mcp.tools import TOOLS
from states.api.states import StateViewSet
from tests.conftest import ClientWith, error_reason
from tests.infra_service.mcp.conftest import READING, SECRET_OUTPUT, WITH_INITIALIZE, Mcp
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import instance, resource, state
from workloads.models import Cluster, Workload

NOBODY = "01941f29-7c00-719e-8289-09881617432c"
#: Valid arguments of each tool, of nothing that exists.
ARGUMENTS: dict[str, dict[str, Any]] = {
    **{name: {} for name in TOOLS},
    "find_resource": {"identifier": "i-1"},
    **{key: {"state_id": NOBODY} for key in ("get_state", "list_outputs", "list_dependencies")},
    "find_managing_states": {"workloads": [{"cluster_id": NOBODY, "workload_id": NOBODY}]},
}


def listed(mcp: Mcp) -> list[str]:
    return [tool["name"] for tool in mcp.result("tools/list")["tools"]]


def test_descriptions(mcp: Mcp) -> None:
    tools = {tool["name"]: tool for tool in mcp.result("tools/list")["tools"]}

    assert list(tools) == list(TOOLS)
    schema = tools["list_states"]["inputSchema"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["properties"]["environment"]["description"] == "Slug of the environment."
    assert (
        "Fields of the filter: component_id, environment_id" in tools["list_states"]["description"]
    )
    assert tools["get_state"]["inputSchema"]["required"] == ["state_id"]
    assert "#/$defs/WorkloadRef" in json.dumps(tools["find_managing_states"]["inputSchema"])
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())
    assert "ttlMs" not in Mcp(mcp.client, WITH_INITIALIZE).result("tools/list")


@pytest.mark.parametrize("scope", [*READING, "state:write", "apikey:read"])
def test_a_token_sees_the_tools_of_its_scopes(client_with: ClientWith, scope: str) -> None:
    mcp = Mcp(client_with(scope))
    allowed = [name for name, tool in TOOLS.items() if tool.scope == scope]

    assert listed(mcp) == allowed
    for name in TOOLS:
        response = mcp.send("tools/call", {"name": name, "arguments": ARGUMENTS[name]})
        assert response.status_code == (200 if name in allowed else 403)
        if name not in allowed:
            assert error_reason(response) == "SCOPE_INSUFFICIENT"
            assert 'error="insufficient_scope", scope="' in response["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("get_state", {}, "missing required field `state_id`"),
        ("get_state", {"state_id": 7}, "Expected `uuid`, got `int` - at `$.state_id`"),
        ("get_state", {"state_id": "../../admin"}, "Invalid UUID"),
        ("get_state", {"state_id": NOBODY}, "does not exist"),
        ("list_states", {"filter": ["x"]}, "Expected `str`, got `array`"),
        ("list_states", {"page_size": "5"}, "unknown field `page_size`"),
        ("list_states", {"filter": "nonsense"}, "expected a term"),
        (
            "list_unwell_workloads",
            {"filter": "replicas_ready = 0) OR (replicas_ready = 1"},
            "expected",
        ),
        ("list_states", {"environment": "x' OR field['environment'] != 'x"}, "regex"),
        ("list_states", {"environment": "x\\"}, "regex"),
        ("list_states", {"cursor": "nonsense"}, "page_token"),
        ("find_resource", {"identifier": ""}, "length >= 1"),
        ("find_managing_states", {"workloads": []}, "length >= 1"),
        ("find_managing_states", {"workloads": [{"cluster_id": NOBODY}]}, "workload_id"),
        ("find_managing_states", ARGUMENTS["find_managing_states"], "The cluster does not exist"),
    ],
)
def test_wrong_arguments_are_results_that_an_assistant_can_correct(
    mcp: Mcp, name: str, arguments: Any, message: str
) -> None:
    assert message in mcp.error(name, **arguments)


@pytest.mark.parametrize(
    "params", [{}, {"name": "drop"}, {"name": 7}, {"name": "list_states", "arguments": [1]}]
)
def test_unknown_tools_are_errors_of_the_protocol(mcp: Mcp, params: Any) -> None:
    legacy = Mcp(mcp.client, WITH_INITIALIZE)

    assert legacy.send("tools/call", params).json()["error"]["code"] == -32602
    assert AuditEvent.objects.filter(action="mcp.call").count() == 0


@pytest.mark.parametrize(
    "text",
    [
        "(" * 16 + "field['namespace'] = 'shop'" + ")" * 16,
        "NOT (" * 16 + "field['namespace'] = 'shop'" + ")" * 16 + " AND field['name'] = 'web'",
        "(" * 15 + "field['name'] = 'api'" + ")" * 15 + " OR field['name'] = 'web'",
        " ",
    ],
)
def test_filters_of_an_assistant_are_as_deep_as_those_of_the_api(
    mcp: Mcp, fleet: Cluster, text: str
) -> None:
    parse(text)
    degraded = [each["name"] for each in mcp.call("list_unwell_workloads")["workloads"]]

    found = mcp.call("list_unwell_workloads", cluster=fleet.name, filter=text)["workloads"]

    assert degraded == [each["name"] for each in found] != []


def test_alternatives_do_not_escape_the_other_arguments(mcp: Mcp, fleet: Cluster) -> None:
    text = "field['name'] = 'nothing' OR field['name'] != 'nothing'"

    assert mcp.call("list_unwell_workloads", namespace="elsewhere", filter=text)["workloads"] == []


def test_null_arguments_are_none(mcp: Mcp) -> None:
    assert mcp.result("tools/call", {"name": "list_states", "arguments": None})["isError"] is False


def test_each_call_is_an_event_without_its_arguments(mcp: Mcp) -> None:
    mcp.call("find_resource", identifier="arn:aws:iam::1:role/x")
    mcp.error("get_state", state_id="wrong")

    calls = AuditEvent.objects.filter(action="mcp.call").order_by("id")
    assert list(calls.values_list("resource_id", "token_id", "actor_name", "details")) == [
        (name, mcp.client.token.pk, "operator", {})  # type: ignore[attr-defined]
        for name in ("find_resource", "get_state")
    ]


def test_calls_count_once_for_the_rate_limits(
    client_with: ClientWith, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATE_LIMIT_TOKEN = 3
    monkeypatch.setattr(limits.time, "time", lambda: 1_800_000_000.0)  # within the same window
    mcp = Mcp(client_with("state:read"))

    statuses = [mcp.send("tools/call", {"name": "list_states"}).status_code for _ in range(4)]

    assert statuses == [200, 200, 200, 429]


def test_a_revoked_token_is_refused(mcp: Mcp) -> None:
    AccessToken.objects.update(revoked_at="2026-01-01T00:00:00Z")

    assert mcp.send("tools/list").status_code == 401


def test_answers_are_those_of_the_api(mcp: Mcp, production: Backend) -> None:
    (shown,) = mcp.call("list_states")["states"]
    (alone,) = mcp.call("get_state", state_id=str(production.record.pk))["states"]
    api = mcp.client.get("/api/v1/states").json()["states"][0]

    assert shown == alone == {name: value for name, value in api.items() if value is not None}


def test_a_bound_token_sees_only_its_states(
    client_with: ClientWith, production: Backend, fleet: Cluster
) -> None:
    bound = Mcp(client_with(*READING, bound_environment_ids=[str(uuid.uuid4())]))
    inside = Mcp(client_with(*READING, bound_environment_ids=[str(production.environment_id)]))

    assert len(inside.call("list_states")["states"]) == 1
    assert len(inside.call("list_resources")["resources"]) == 2
    assert bound.call("list_states")["states"] == []
    assert bound.call("list_resources")["resources"] == []
    assert bound.call("find_resource", identifier="acme-logs")["resources"] == []
    assert bound.call("list_providers")["providers"] == []
    assert bound.call("list_locks")["states"] == []
    for name in ("get_state", "list_outputs", "list_dependencies"):
        assert "does not exist" in bound.error(name, state_id=str(production.record.pk))
    assert "outside the binding" in bound.error("search_audit_log")


def test_sensitive_outputs_need_the_scope_and_the_setting(
    client_with: ClientWith, production: Backend, settings: LazySettings
) -> None:
    reading = Mcp(client_with("state:read"))
    seeing = Mcp(client_with("state:read", "state:secrets"))

    def outputs(mcp: Mcp) -> Any:
        answer = mcp.call("list_outputs", state_id=str(production.record.pk))
        return {output["name"]: output.get("value") for output in answer["outputs"]}

    hidden = {"password": "(sensitive value)", "url": "https://shop.example"}
    assert outputs(reading) == outputs(seeing) == hidden
    settings.MCP_SENSITIVE_OUTPUTS = True
    assert outputs(reading) == hidden
    assert outputs(seeing) == {**hidden, "password": SECRET_OUTPUT}
    reads = AuditEvent.objects.filter(action="state.read").order_by("id")
    assert [event.details["secrets"] for event in reads] == [False, False, False, True]


@pytest.mark.slow
def test_long_lists_have_cursors(mcp: Mcp, writer: Any) -> None:
    for number in range(30):
        name = "x" * 200 + str(number)
        things = [resource(f"{name}_{n}", instance({"id": str(n)})) for n in range(3)]
        assert Backend(writer).push(state(*things)).status_code == 200
    index()

    found = mcp.all("list_resources", "resources")
    states = mcp.all("list_states", "states")

    api = mcp.client.items("/api/v1/resources", "resources")  # type: ignore[attr-defined]
    assert [each["address"] for each in found] == [each["address"] for each in api]
    assert len({each["id"] for each in states}) == 30


def test_large_outputs_are_shortened_and_paged(mcp: Mcp, writer: Any) -> None:
    values: dict[str, Any] = {
        "long": "é" * 5_000,
        "quotes": '"\\' * 5_000,
        "wide": list(range(500)),
        "many": {f"k{n}": "v" * 90 for n in range(500)},
        "deep": json.loads('{"a":' * 60 + "1" + "}" * 60),
        **{f"o{n:03}": "w" * 290 for n in range(60)},
    }
    backend = Backend(writer)
    outputs = {name: {"value": value, "type": "dynamic"} for name, value in values.items()}
    assert backend.push(state(outputs=outputs)).status_code == 200

    found = mcp.all("list_outputs", "outputs", state_id=str(backend.record.pk))

    assert len(found) == len(values)
    shown = {each["name"]: each["value"] for each in found if isinstance(each, dict)}
    assert shown["long"] == "é" * 300 + "…"
    assert len(shown["wide"]) == 31
    assert "…" in json.dumps(shown["deep"], ensure_ascii=False)


def test_numbers_keep_their_digits(mcp: Mcp, writer: Any) -> None:
    backend = Backend(writer)
    body = state(outputs={"size": {"value": "PLACE", "type": "number"}})
    assert backend.push(body.replace(b'"PLACE"', b"1e400")).status_code == 200
    state_id = str(backend.record.pk)

    answer = mcp.send("tools/call", {"name": "list_outputs", "arguments": {"state_id": state_id}})

    assert '"value":1E+400' in answer.json()["result"]["content"][0]["text"]


def test_a_call_with_many_workloads_says_what_it_omits(mcp: Mcp, fleet: Cluster) -> None:
    Workload.objects.update(status_reason="\\" * 250)
    pairs = [
        {"cluster_id": str(fleet.pk), "workload_id": str(pk)}
        for pk in Workload.objects.values_list("pk", flat=True)
    ]

    answer = mcp.call("find_managing_states", workloads=pairs * 5)

    assert answer["omitted"] + len(answer["workloads"]) == 10


def test_a_call_costs_one_statement_more_than_the_request(mcp: Mcp, production: Backend) -> None:
    mcp.client.get("/api/v1/states")  # the first use of the token is recorded
    with CaptureQueriesContext(connection) as of_api:
        mcp.client.get("/api/v1/states")
    with CaptureQueriesContext(connection) as of_tool:
        mcp.call("list_states")

    assert len(of_tool) == len(of_api) + 1


def test_a_failure_of_the_database_is_that_of_the_api(
    mcp: Mcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_view: object) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(StateViewSet, "get_queryset", fails)

    response = mcp.send("tools/call", {"name": "list_states"})

    assert response.status_code == 503
    assert response["Retry-After"]


@pytest.mark.slow
def test_long_addresses_of_providers_have_cursors(mcp: Mcp, writer: Any) -> None:
    for number in range(50):
        thing = resource(f"a{number}", instance({"id": str(number)}))
        address = f"example.com/{'x' * 1500}/p{number:02}"
        thing["provider"] = f'provider["{address}"]'
        assert Backend(writer).push(state(thing)).status_code == 200
    index()
    assert len(mcp.all("list_providers", "providers")) == 50
