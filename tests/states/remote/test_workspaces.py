"""Workspaces: names, tags, lists, deletion, organizations, and the routes."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client, override_settings

from states import workspaces
from states.addresses import Names
from states.models import Application, Component, State
from tests.conftest import ClientWith
from tests.e2e.backend import document
from tests.states.remote.conftest import FIRST, RemoteClient, error_of

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.states.remote.urls")]

WORKSPACES = "organizations/default/workspaces"


def names_in(page: Any) -> list[str]:
    return [item["attributes"]["name"] for item in page.json()["data"]]


@pytest.mark.parametrize(
    ("name", "component", "environment", "shown"),
    [
        ("network-prod", "network", "prod", "network-prod"),
        ("my-network-prod", "my-network", "prod", "my-network-prod"),
        ("network", "network", "default", "network"),
        ("network__eu-prod", "network", "eu-prod", "network__eu-prod"),
        ("My_Network-PROD", "my-network", "prod", "my-network-prod"),
        ("network-lock", "network", "environment-lock", "network__environment-lock"),
        ("my-app-default", "my-app", "default", "my-app-default"),
        ("-", "component", "environment", "component-environment"),
    ],
)
def test_names_become_slugs(name: str, component: str, environment: str, shown: str) -> None:
    names = workspaces.names_of(name)
    assert names == Names(component, environment)
    assert workspaces.name_of(names) == shown
    assert workspaces.names_of(shown) == names


@override_settings(REMOTE_WORKSPACES="{environment}_{component}", REMOTE_DEFAULT_ENVIRONMENT="dev")
def test_the_form_of_names_is_configurable() -> None:
    assert workspaces.names_of("prod_my-app") == Names("my-app", "prod")
    assert workspaces.name_of(Names("my-app", "eu-prod")) == "eu-prod_my-app"
    assert workspaces.name_of(Names("my-app", "dev")) == "my-app"


@pytest.mark.parametrize("text", ["", "{component}", "{component}{environment}", "{environment}-x"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="form"):
        workspaces.Form.read(text)


def test_a_workspace_keeps_a_name_that_slugs_do_not_yield(remote: RemoteClient) -> None:
    id_ = remote.created("My_Network-PROD")
    found = remote.send("GET", f"{WORKSPACES}/My_Network-PROD").json()["data"]
    assert (found["id"], found["attributes"]["name"]) == (id_, "My_Network-PROD")
    assert found["attributes"]["execution-mode"] == "local"
    assert error_of(remote.send("GET", f"{WORKSPACES}/my-network-prod")) == "WORKSPACE_NOT_FOUND"
    clash = remote.create("my-network-prod")
    assert (clash.status_code, error_of(clash)) == (422, "WORKSPACE_EXISTS")
    assert names_in(remote.send("GET", f"{WORKSPACES}?search[name]=my_")) == ["My_Network-PROD"]


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ü", "a" * 129, "x/y", "a\x00b", None, 7])
def test_odd_names_are_refused(remote: RemoteClient, name: Any) -> None:
    answer = remote.create(name)
    assert (answer.status_code, error_of(answer)) == (422, "INVALID_ATTRIBUTE")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"data": 1}', b"\xff", b'{"data": {}}'])
def test_odd_bodies_are_refused(remote: RemoteClient, body: bytes) -> None:
    answer = remote.client.generic("POST", f"/api/v2/{WORKSPACES}", body)
    assert answer.status_code in (400, 422)
    assert error_of(answer) in ("INVALID_JSON", "INVALID_ATTRIBUTE")


def test_a_pushed_state_is_a_workspace(remote: RemoteClient) -> None:
    remote.client.generic("POST", "/api/v1/state/at/network/eu-prod", FIRST)
    assert names_in(remote.send("GET", WORKSPACES)) == ["network__eu-prod"]
    assert error_of(remote.create("network__eu-prod")) == "WORKSPACE_EXISTS"


def test_a_renamed_component_is_found_by_its_former_name(remote: RemoteClient) -> None:
    id_ = remote.created("network-prod")
    component = Component.objects.get()
    changed = remote.client.send(
        "PATCH", f"/api/v1/components/{component.pk}", {"component": {"slug": "net"}}
    )
    assert changed.status_code == 200
    for name in ("network-prod", "net-prod"):
        assert remote.send("GET", f"{WORKSPACES}/{name}").json()["data"]["id"] == id_


def test_tags_select_workspaces(remote: RemoteClient) -> None:
    remote.created("network-dev", team="core", shared="")
    id_ = remote.created("network-prod", team="core")
    assert len(names_in(remote.send("GET", f"{WORKSPACES}?search[tags]=team"))) == 2
    assert names_in(remote.send("GET", f"{WORKSPACES}?search[name]=NETWORK-d")) == ["network-dev"]
    assert names_in(remote.send("GET", f"{WORKSPACES}?search[tags]=team,shared")) == ["network-dev"]
    pair = "filter[tagged][0][key]=team&filter[tagged][0][value]=core"
    assert len(names_in(remote.send("GET", f"{WORKSPACES}?{pair}"))) == 2
    assert names_in(remote.send("GET", f"{WORKSPACES}?{pair}2")) == []

    tag = [{"type": "tags", "attributes": {"name": "shared"}}]
    assert remote.send("POST", f"workspaces/{id_}/relationships/tags", tag).status_code == 204
    bound = [{"type": "tag-bindings", "attributes": {"key": "team", "value": "edge"}}]
    answer = remote.send("PATCH", f"workspaces/{id_}/tag-bindings", bound).json()["data"]
    assert [each["attributes"] for each in answer] == [
        {"key": "shared", "value": ""},
        {"key": "team", "value": "edge"},
    ]
    unknown = remote.send("GET", f"{WORKSPACES}?search[wildcard-name]=x")
    assert error_of(unknown) == "INVALID_FIELDS"


@pytest.mark.parametrize("key", ["2024", "-1", "a.b", "a:b/c=d", "a b", "x" * 128])
def test_every_key_is_found(remote: RemoteClient, key: str) -> None:
    remote.created("network-dev", **{key: "7"})
    remote.created("network-prod", **{key: "8"})
    text = quote(key)
    assert len(names_in(remote.send("GET", f"{WORKSPACES}?search[tags]={text}"))) == 2
    pair = f"filter[tagged][0][key]={text}&filter[tagged][0][value]=7"
    assert names_in(remote.send("GET", f"{WORKSPACES}?{pair}")) == ["network-dev"]


@pytest.mark.parametrize("key", ['a"b', "a\\b", "", "\u00e9", "x" * 129])
def test_odd_keys_are_refused_and_not_found(remote: RemoteClient, key: str) -> None:
    assert error_of(remote.create("network-dev", **{key: "7"})) == "INVALID_ATTRIBUTE"
    remote.created("network-prod", team="core")
    if key:
        found = remote.send("GET", f"{WORKSPACES}?search[tags]={quote(key)}")
        assert names_in(found) == []
    pair = f"filter[tagged][0][key]={quote(key)}&filter[tagged][0][value]=7"
    assert names_in(remote.send("GET", f"{WORKSPACES}?{pair}")) == []


def test_a_search_for_many_tags_finds_nothing(remote: RemoteClient) -> None:
    remote.created("network-prod", a="1", b="2")
    for query, found in (
        ({"search[tags]": ",".join(["a", "b"] * 200)}, ["network-prod"]),
        ({"search[tags]": ",".join(f"t{number}" for number in range(1500))}, []),
        ({f"filter[tagged][{n}][key]": f"t{n}" for n in range(900)}, []),
        ({"filter[tagged][0][key]": "a", "filter[tagged][1][key]": "a"}
         | {"filter[tagged][0][value]": "1", "filter[tagged][1][value]": "2"}, []),
    ):  # fmt: skip
        answer = remote.client.get(f"/api/v2/{WORKSPACES}", query)
        assert (answer.status_code, names_in(answer)) == (200, found)


def test_a_workspace_has_a_maximum_of_tags(remote: RemoteClient) -> None:
    tags = {f"tag-{number}": "" for number in range(51)}
    assert error_of(remote.create("network-dev", **tags)) == "TOO_MANY_TAGS"
    assert remote.send("GET", f"{WORKSPACES}/network-dev").status_code == 404

    del tags["tag-0"]
    path = f"workspaces/{remote.created('network-dev', **tags)}/tag-bindings"
    one_more = [{"type": "tag-bindings", "attributes": {"key": "tag-0", "value": ""}}]
    assert error_of(remote.send("PATCH", path, one_more)) == "TOO_MANY_TAGS"
    known = [{"type": "tag-bindings", "attributes": {"key": "tag-1", "value": "x"}}]
    assert len(remote.send("PATCH", path, known).json()["data"]) == 50


def test_the_longest_slugs_yield_a_name_that_is_found(
    remote: RemoteClient, client_with: ClientWith
) -> None:
    component, environment = "c" * 63, "e" * 63
    backend = client_with("state:read", "state:write")
    path = f"/api/v1/state/at/{component}/{environment}"
    assert backend.post(path, FIRST, "application/json").status_code == 200
    (name,) = names_in(remote.send("GET", WORKSPACES))
    assert remote.send("GET", f"{WORKSPACES}/{name}").status_code == 200


@pytest.mark.parametrize("text", ["%00", "%5Cud800", "%25", "%27", "a" * 3000, "%F0%9F%98%80"])
def test_odd_texts_are_no_failure(remote: RemoteClient, workspace_id: str, text: str) -> None:
    pair = f"filter[tagged][0][key]={text}&filter[tagged][0][value]={text}"
    for query in (f"search[name]={text}", f"search[tags]={text}", pair):
        assert remote.send("GET", f"{WORKSPACES}?{query}").status_code in (200, 400)
    versions = f"filter[organization][name]={text}&filter[workspace][name]={text}"
    for path in (
        f"organizations/{text}",
        f"organizations/{text}/workspaces/{text}",
        f"workspaces/{text}/current-state-version",
        f"state-versions/{text}/download",
        f"state-version-outputs/{text}",
        f"state-versions?{versions}",
    ):
        assert remote.send("GET", path).status_code in (400, 404), path


@pytest.mark.parametrize("text", ["\\ud800", "\\u0000", "x" * 256])
def test_odd_tags_and_reasons_are_refused(
    remote: RemoteClient, workspace_id: str, text: str
) -> None:
    tags = f'{{"data": [{{"type": "tags", "attributes": {{"name": "{text}"}}}}]}}'
    path = f"/api/v2/workspaces/{workspace_id}"
    answer = remote.client.generic("POST", f"{path}/relationships/tags", tags)
    assert answer.status_code in (400, 422)
    reason = f'{{"data": {{"attributes": {{"reason": "{text}"}}}}}}'
    assert remote.client.generic("POST", f"{path}/actions/lock", reason).status_code in (
        200,
        400,
        422,
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["{component}-{environment}", "{environment}--{component}"])
def test_search_finds_names_by_their_beginning(remote: RemoteClient, form: str) -> None:
    parts = ("app", "my-app", "eu-prod", "default", "My_App")
    with override_settings(REMOTE_WORKSPACES=form):
        for first, separator, last in itertools.product(parts, ("-", "__"), parts):
            remote.create(f"{first}{separator}{last}")  # some of them exist
        for component, environment in (("web", "default"), ("api", "prod"), ("a-b", "default")):
            # Without a record of the workspace.
            path = f"/api/v1/state/at/{component}/{environment}"
            assert remote.client.post(path, FIRST, "application/json").status_code == 200
        shown = set(names_in(remote.send("GET", f"{WORKSPACES}?page[size]=100")))
        assert len(shown) > 20
        beginnings = {name[:end] for name in shown for end in range(1, len(name) + 1)}
        for text in sorted(beginnings | {"MY", "-", "_", "App-P", "zz"})[::4]:
            found = names_in(remote.send("GET", f"{WORKSPACES}?page[size]=100&search[name]={text}"))
            expected = {name for name in shown if name.lower().startswith(text.lower())}
            assert set(found) == expected, text


def test_pages_have_numbers(remote: RemoteClient) -> None:
    for number in range(5):
        remote.created(f"network-{number}")
    page = remote.send("GET", f"{WORKSPACES}?page[size]=2&page[number]=2")
    assert names_in(page) == ["network-2", "network-3"]
    assert page.json()["meta"]["pagination"] == {
        "current-page": 2,
        "page-size": 2,
        "prev-page": 1,
        "next-page": 3,
        "total-pages": 3,
        "total-count": 5,
    }
    for bad in ("0", "-1", "x", "9" * 20):
        refused = remote.send("GET", f"{WORKSPACES}?page[number]={bad}")
        assert error_of(refused) == "INVALID_FIELDS"
    twice = remote.send("GET", f"{WORKSPACES}?page[number]=1&page[number]=2")
    assert (twice.status_code, error_of(twice)) == (400, "INVALID_FIELDS")


def test_a_workspace_with_resources_is_not_deleted(remote: RemoteClient, locked: str) -> None:
    resources = [
        {
            "mode": "managed",
            "type": "terraform_data",
            "name": "a",
            "provider": 'provider["terraform.io/builtin/terraform"]',
            "instances": [{"schema_version": 0, "attributes": {"id": "1"}}],
        }
    ]
    remote.push(locked, document(1, resources=resources))
    assert error_of(remote.act(locked, "safe-delete")) == "STATE_LOCKED"
    remote.act(locked, "unlock")
    for answer in (
        remote.act(locked, "safe-delete"),
        remote.send("DELETE", f"workspaces/{locked}"),
        remote.send("DELETE", f"{WORKSPACES}/network-prod"),
    ):
        assert (answer.status_code, error_of(answer)) == (409, "WORKSPACE_NOT_EMPTY")

    remote.act(locked, "lock")
    remote.push(locked, document(2))
    remote.act(locked, "unlock")
    assert remote.act(locked, "safe-delete").status_code == 204
    assert remote.send("GET", f"workspaces/{locked}").status_code == 404


def test_a_deleted_workspace_begins_anew(remote: RemoteClient, locked: str) -> None:
    remote.push(locked, document(5, "former"))
    remote.act(locked, "unlock")
    assert remote.send("DELETE", f"workspaces/{locked}").status_code == 204

    assert remote.created("network-prod") == locked
    assert remote.send("GET", f"workspaces/{locked}/current-state-version").status_code == 404
    remote.act(locked, "lock")
    remote.push(locked, FIRST)
    assert remote.pulled(locked) == FIRST


def test_organizations_are_applications(remote: RemoteClient) -> None:
    assert error_of(remote.create("network-prod", "shop")) == "ORGANIZATION_NOT_FOUND"
    application = Application.objects.create(name="Shop", slug="shop")
    id_ = remote.created("network-prod", "shop")
    assert State.objects.get().application_id == application.pk
    assert names_in(remote.send("GET", WORKSPACES)) == []
    assert (
        remote.send("GET", "organizations/shop/workspaces/network-prod").json()["data"]["id"] == id_
    )
    assert names_in(remote.send("GET", "organizations")) == ["default", "shop"]
    entitlements = remote.send("GET", "organizations/shop/entitlement-set").json()["data"]
    assert entitlements["attributes"] == {"operations": False, "state-storage": True}
    assert remote.send("GET", "organizations/shop").status_code == 200
    assert remote.send("GET", "organizations/shop/projects").json()["data"] == []
    for path in ("", "/entitlement-set", "/projects", "/workspaces"):
        assert error_of(remote.send("GET", f"organizations/x{path}")) == "ORGANIZATION_NOT_FOUND"


@pytest.mark.parametrize("scope", ["cluster:report", "webhook:write", "audit:read"])
def test_organizations_are_hidden_from_tokens_without_a_scope_for_states(
    client_with: ClientWith, scope: str
) -> None:
    Application.objects.create(name="Shop", slug="shop")
    other = RemoteClient(client_with(scope))

    for path in ("organizations", *(f"organizations/{name}" for name in ("shop", "missing"))):
        assert error_of(other.send("GET", path)) == "SCOPE_INSUFFICIENT"
    for path in ("entitlement-set", "projects"):
        assert error_of(other.send("GET", f"organizations/shop/{path}")) == "SCOPE_INSUFFICIENT"


def test_a_project_has_no_effect(remote: RemoteClient) -> None:
    """With ``project`` in its block, Terraform creates a missing project before a workspace."""
    data: dict[str, Any] = {"type": "projects", "attributes": {"name": "platform team"}}
    answer = remote.send("POST", "organizations/default/projects", data)
    assert answer.status_code == 201
    project = answer.json()["data"]
    assert project["attributes"] == {"name": "platform team"}
    assert remote.send("GET", "organizations/default/projects").json()["data"] == []

    linked = {"project": {"data": {"type": "projects", "id": project["id"]}}}
    data = {"type": "workspaces", "attributes": {"name": "network-prod"}, "relationships": linked}
    assert remote.send("POST", WORKSPACES, data).status_code == 201


def test_operations_and_renames_are_refused(remote: RemoteClient, workspace_id: str) -> None:
    for attributes in ({"execution-mode": "remote"}, {"operations": True}, {"name": "other"}):
        data = {"type": "workspaces", "attributes": attributes}
        answer = remote.send("PATCH", f"workspaces/{workspace_id}", data)
        assert (answer.status_code, error_of(answer)) == (422, "INVALID_ATTRIBUTE")
    version = {"type": "workspaces", "attributes": {"terraform-version": "1.11.4"}}
    assert remote.send("PATCH", f"workspaces/{workspace_id}", version).status_code == 200


def test_discovery_ping_and_account(remote: RemoteClient, anonymous: Client) -> None:
    assert anonymous.get("/.well-known/terraform.json").json()["tfe.v2"] == "/api/v2/"
    assert anonymous.get("/api/v2/ping")["TFP-API-Version"] == "2.6"
    page = anonymous.get("/app/settings/tokens?source=terraform-login")
    assert page["Location"] == "/admin/apikeys/accesstoken/add/"
    account = remote.send("GET", "account/details").json()["data"]["attributes"]
    assert account["username"] == "operator"


def test_all_other_routes_are_refused_with_a_reason(remote: RemoteClient) -> None:
    for method, path in (
        ("POST", "runs"),
        ("GET", "organizations/default/policies"),
        ("GET", "workspaces/ws-1/vars"),
        ("PATCH", ""),
    ):
        answer = remote.send(method, path)
        assert (answer.status_code, error_of(answer)) == (404, "ROUTE_NOT_FOUND")
    assert error_of(remote.send("PUT", WORKSPACES)) == "METHOD_NOT_ALLOWED"


def test_requests_need_a_token_with_the_scope(
    anonymous: Client, client_with: ClientWith, remote: RemoteClient, workspace_id: str
) -> None:
    answer = anonymous.get(f"/api/v2/workspaces/{workspace_id}")
    assert (answer.status_code, error_of(answer)) == (401, "CREDENTIALS_MISSING")
    reader = RemoteClient(client_with("state:read"))
    assert error_of(reader.act(workspace_id, "lock")) == "SCOPE_INSUFFICIENT"
    assert error_of(reader.create("x-y")) == "SCOPE_INSUFFICIENT"
    foreign = RemoteClient(client_with("cluster:read"))
    assert error_of(foreign.send("GET", f"workspaces/{workspace_id}")) == "SCOPE_INSUFFICIENT"


def test_the_routes_are_off_by_default(client_with: ClientWith) -> None:
    with override_settings(ROOT_URLCONF="infra_service.urls"):
        client = client_with("state:read")
        assert client.get("/api/v2/ping").status_code == 404
        assert client.get("/.well-known/terraform.json").status_code == 404


@pytest.mark.parametrize(("text", "status"), [(r"\\u0000", 200), (r"\\\u0000", 422)])
def test_an_escaped_backslash_is_no_part_of_a_nul(
    remote: RemoteClient, workspace_id: str, text: str, status: int
) -> None:
    reason = f'{{"data": {{"attributes": {{"reason": "{text}"}}}}}}'
    path = f"/api/v2/workspaces/{workspace_id}/actions/lock"
    assert remote.client.generic("POST", path, reason).status_code == status


def test_a_repeated_member_is_refused(remote: RemoteClient) -> None:
    body = b'{"data": {"type": "workspaces", "attributes": {"name": "a-b", "name": "c-d"}}}'
    answer = remote.client.generic("POST", f"/api/v2/{WORKSPACES}", body)
    assert (answer.status_code, error_of(answer)) == (422, "INVALID_ATTRIBUTE")
    assert "'name' is repeated" in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize("depth", [900, 980, 995, 1000, 1020, 1100])
def test_no_nesting_of_a_document_is_a_fault_of_ours(remote: RemoteClient, depth: int) -> None:
    deep = '{"data": {"attributes": {"name": "a", "x": ' + "[" * depth + "]" * depth + "}}}"
    answer = remote.client.generic("POST", f"/api/v2/{WORKSPACES}", deep)
    assert answer.status_code in (201, 400, 422)
