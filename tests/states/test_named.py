"""The state backend at addresses of names."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from apikeys.bindings import Binding
from apikeys.models import AuditEvent
from states import addresses
from states.models import Application, Component, Environment, State
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import Backend, document
from tests.states.test_outside_a_binding import BACKEND, SCOPES
from tests.states.test_slugs import OF_NO_FORM

ALL = ("state:read", "state:write", "state:admin")


class Named(Backend):
    """The backend at an address of names."""

    def __init__(self, client: ApiClient, names: str) -> None:
        super().__init__(client)
        self.names = names

    @property
    def path(self) -> str:
        return f"/api/v1/state/at/{self.names}"

    def as_client(self, client: ApiClient) -> Named:
        return Named(client, self.names)

    @property
    def record(self) -> State:
        return State.objects.get()


@pytest.fixture
def client(client_with: ClientWith) -> ApiClient:
    return client_with(*ALL)


@pytest.fixture(params=["network/prod", "shop/network/prod"])
def named(request: pytest.FixtureRequest, client: ApiClient) -> Named:
    return Named(client, str(request.param))


def by_ids(named: Backend) -> Backend:
    """Return the same state at the address of its ids."""
    state, other = State.objects.get(), Backend(named.client)
    other.component_id, other.environment_id = state.component_id, state.environment_id
    return other


def description(answer: Any) -> str:
    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
    return str(answer.json()["error"]["details"][1]["field_violations"][0]["description"])


def test_all_verbs_are_of_the_same_state(named: Named, lock_id: uuid.UUID) -> None:
    assert named.get().status_code == 404
    assert named.delete().status_code == 404
    assert named.unlock(lock_id).status_code == 200  # nothing is locked
    assert not State.objects.exists()
    assert not Component.objects.exists()

    assert named.lock(lock_id).status_code == 200
    other = by_ids(named)
    assert other.lock(uuid.uuid4()).status_code == 423
    assert named.push(document(1)).status_code == 423
    assert named.push(document(1), f"?ID={lock_id}").status_code == 200
    assert other.push(document(2), f"?ID={lock_id}").status_code == 200
    assert named.get().content == other.get().content == document(2)
    assert named.client.head(named.path).status_code == 200
    assert named.client.get(named.path + "/").status_code == 200
    assert named.unlock(uuid.uuid4()).status_code == 409
    assert named.unlock(lock_id).status_code == 200
    assert other.lock(lock_id).status_code == 200
    assert named.unlock(None).status_code == 200  # terraform force-unlock
    info = json.dumps({"ID": str(lock_id)})
    assert named.send("POST", info, "/lock").status_code == 200
    assert by_ids(named).record.lock_id == lock_id
    assert named.send("DELETE", info, "/lock/").status_code == 200
    assert named.push(document(1)).status_code == 409
    assert named.push(document(1), "?force=true").status_code == 200
    assert named.delete().status_code == 200
    assert (named.get().status_code, other.get().status_code) == (404, 404)
    assert named.push(document(3)).status_code == 200
    assert State.objects.count() == 1


@pytest.mark.parametrize("verb", ["push", "lock"])
def test_the_first_push_or_lock_registers_all_of_it(
    named: Named, lock_id: uuid.UUID, verb: str
) -> None:
    assert (named.push(document()) if verb == "push" else named.lock(lock_id)).status_code == 200

    state = named.record
    application = state.component.application
    *first, component, environment = named.names.split("/")
    assert [application.slug, application.name] == first * 2 if application else not first
    assert (state.component.slug, state.component.name) == (component, component)
    assert (state.environment.slug, state.environment.name) == (environment, environment)
    assert state.application_id == state.component.application_id
    assert addresses.path_of(state) == named.path
    shown = named.client.get(f"/api/v1/states/{state.pk}").json()["state"]
    assert (shown["component_slug"], shown["environment_slug"]) == (component, environment)
    assert AuditEvent.objects.filter(action="state.create").count() == 1


def test_rejected_body_creates_no_entries(named: Named) -> None:
    assert named.push(b"{").status_code == 400
    assert named.send("LOCK", "{}").status_code == 400
    assert not State.objects.exists()
    assert not Application.objects.exists()
    assert not Environment.objects.exists()


def test_existing_entries_are_used(client: ApiClient) -> None:
    environment = Environment.objects.create(name="Production", slug="prod")
    first, second = Named(client, "network/prod"), Named(client, "database/prod")
    assert first.push(document()).status_code == 200
    assert second.push(document()).status_code == 200
    inside = Named(client, "shop/network/prod")
    assert inside.push(document()).status_code == 200

    assert set(State.objects.values_list("environment", flat=True)) == {environment.pk}
    assert State.objects.count() == Component.objects.count() == 3
    environment.refresh_from_db()
    assert environment.name == "Production"


def test_renamed_component_resolves_by_both_slugs_until_the_former_is_reused(
    client: ApiClient, lock_id: uuid.UUID
) -> None:
    old, new = Named(client, "network/prod"), Named(client, "net/prod")
    old.push(document(1))
    component = Component.objects.get()
    client.send("PATCH", f"/api/v1/components/{component.pk}", {"component": {"slug": "net"}})

    assert old.get().content == new.get().content == document(1)
    assert old.push(document(2)).status_code == 200
    assert new.lock(lock_id).status_code == 200
    assert old.lock(uuid.uuid4()).status_code == 423
    # Nor does the former register anything where the state is new.
    assert Named(client, "network/staging").push(document()).status_code == 200
    assert Component.objects.count() == 1

    client.send("POST", "/api/v1/components", {"component": {"name": "n", "slug": "network"}})
    assert old.get().status_code == 404
    assert old.push(document(7)).status_code == 200
    assert new.get().content == document(2)
    assert Component.objects.count() == 2


def test_renamed_application_and_environment_keep_their_state(client: ApiClient) -> None:
    old = Named(client, "shop/network/prod")
    old.push(document())
    state = State.objects.get()
    for kind, entry_id in (
        ("application", state.application_id), ("environment", state.environment_id)
    ):  # fmt: skip
        path = f"/api/v1/{kind}s/{entry_id}"
        assert client.send("PATCH", path, {kind: {"slug": f"{kind}-2"}}).status_code == 200

    for names in ("shop/network/prod", "application-2/network/environment-2",
                  "application-2/network/prod"):  # fmt: skip
        assert Named(client, names).get().status_code == 200


def test_a_name_of_another_form(client: ApiClient) -> None:
    texts = [text.replace(" ", "%20") for text in OF_NO_FORM if text not in ("", "a/b")]
    for place in ("{}/prod", "network/{}", "{}/network/prod", "shop/{}/prod", "shop/network/{}"):
        for text in texts:
            answer = Named(client, place.format(text)).get()
            assert description(answer).startswith("The name must be 1 to 63 lower-case")
    upper = Named(client, "Network/prod")
    for answer in (upper.push(document()), upper.lock(uuid.uuid4()), upper.unlock(None)):
        assert description(answer).startswith("The name must be")
    assert not Component.objects.exists()


NO_ADDRESS = ("", "/", "/network", "//prod", "/network//prod", "/a/b/c/d", "/a/b/c/d/lock", "/\n")


def test_invalid_address_is_not_found(client: ApiClient) -> None:
    for path in NO_ADDRESS:
        for method in ("GET", "POST", "LOCK", "UNLOCK", "DELETE"):
            answer = client.generic(method, f"/api/v1/state/at{path}", "{}", "application/json")
            assert description(answer) == (
                "Not a valid address: use /api/v1/state/at/ followed by "
                "{component}/{environment} or "
                "{application}/{component}/{environment}."
            )


def test_a_slash_within_a_name(client: ApiClient) -> None:
    answer = client.get("/api/v1/state/at/a/b/prod", RAW_URI="/api/v1/state/at/a%2Fb/prod?x=1")
    assert description(answer).startswith("Not a valid address")
    answer = client.get("/api/v1/state/at/a/prod", RAW_URI="/api/v1/state/at/a/prod?x=%2F")
    assert answer.status_code == 404


def test_ids_where_names_belong_and_names_where_ids_belong(client: ApiClient) -> None:
    state_id = str(uuid.uuid4())
    assert description(client.get(f"/api/v1/state/at/{state_id}/prod")).startswith(
        "The name must be"
    )
    answer = client.get("/api/v1/state/network/env/prod")
    assert description(answer) == (
        "not a UUID in the form 8-4-4-4-12; the address of a state by names is /api/v1/state/at/ "
        "followed by {component}/{environment} or {application}/{component}/{environment}"
    )
    # A component may be called like a part of the other address.
    assert Named(client, "env/prod").push(document()).status_code == 200
    assert State.objects.get().component.slug == "env"


def test_lock_is_no_environment(client: ApiClient) -> None:
    assert description(client.get("/api/v1/state/at/network/lock")).startswith("The name must be")
    assert client.get("/api/v1/state/at/shop/network/lock").status_code == 405
    assert Named(client, "lock/prod").push(document()).status_code == 200


def test_did_you_mean(client: ApiClient, client_with: ClientWith) -> None:
    Named(client, "network/prod-eu").push(document())
    state = State.objects.get()

    assert description(client.get("/api/v1/state/at/Network/prod-eu")).endswith(
        "; did you mean 'network'?"
    )
    near = "/api/v1/state/at/network/Prod_EU"
    assert description(client.get(near)).endswith("; did you mean 'prod-eu'?")
    assert description(client.get("/api/v1/state/at/network/Staging")).endswith("not a UUID.")
    # Suggestions contain only entries that the bound token can see.
    for environment_id, ending in (
        (state.environment_id, "; did you mean 'prod-eu'?"), (uuid.uuid4(), "not a UUID.")
    ):  # fmt: skip
        bound = client_with(*ALL, bound_environment_ids=[str(environment_id)])
        assert description(bound.get(near)).endswith(ending)


def in_applications(*application_ids: uuid.UUID, **more: Any) -> dict[str, Any]:
    """Return the columns of a token that is bound to these."""
    return Binding(application_ids=frozenset(application_ids), **more).columns()


BOUND: dict[str, Callable[[State], dict[str, Any]]] = {
    "environment": lambda _: {"bound_environment_ids": [str(uuid.UUID(int=7))]},
    "component": lambda _: {"bound_component_ids": [str(uuid.UUID(int=7))]},
    "other-environment": lambda state: {
        "bound_component_ids": [str(state.component_id)],
        "bound_environment_ids": [str(uuid.UUID(int=8))],
    },
    "cluster": lambda _: {"bound_cluster_id": uuid.UUID(int=7)},
    "application": lambda _: in_applications(uuid.UUID(int=7)),
}


@pytest.mark.parametrize("binding", BOUND)
def test_bound_token_cannot_probe_entries_outside_its_binding(
    named: Named, client_with: ClientWith, binding: str
) -> None:
    for serial in (1, 2):
        named.push(document(serial))
    state = State.objects.get()
    client = client_with(*SCOPES, **BOUND[binding](state))
    nowhere = Named(client, named.names.replace("network", "other").replace("prod", "staging"))
    half = Named(client, named.names.replace("prod", "staging"))
    events = AuditEvent.objects.count()

    for method, tail, body in BACKEND:
        responses = []
        for place in (named.as_client(client), nowhere, half):
            answer = client.send(method, place.path + tail, body)
            content = re.sub(rb'"request_id":"[^"]*"', b"", answer.content)
            for given in place.names.split("/"):  # which the message repeats
                content = content.replace(f'\\"{given}\\"'.encode(), b"")
            responses.append((answer.status_code, content, answer.get("ETag")))
        assert responses[0] == responses[1] == responses[2], (method, tail)
        assert responses[0][0] >= 400

    assert (State.objects.count(), Component.objects.count()) == (1, 1)
    assert Environment.objects.count() == 1
    assert AuditEvent.objects.count() == events


def test_token_bound_to_an_environment_can_register_components_in_it(
    client: ApiClient, client_with: ClientWith
) -> None:
    Named(client, "network/prod").push(document())
    environment_id = str(State.objects.get().environment_id)
    bound = client_with(*ALL, bound_environment_ids=[environment_id])

    assert Named(bound, "database/prod").push(document()).status_code == 200
    assert Named(bound, "network/prod").get().status_code == 200
    assert Named(bound, "database/staging").push(document()).status_code == 404
    assert Environment.objects.count() == 1


def test_token_bound_to_an_application_can_register_components_of_it(
    client: ApiClient, client_with: ClientWith, lock_id: uuid.UUID
) -> None:
    shop, bank = (Application.objects.create(name=name, slug=name) for name in ("shop", "bank"))
    bound = client_with(*ALL, **in_applications(shop.pk))

    assert Named(bound, "shop/network/prod").lock(lock_id).status_code == 200
    assert Named(bound, "shop/database/prod").push(document()).status_code == 200
    for outside in ("bank/network/prod", "network/prod", "new/network/prod"):
        for answer in (
            Named(bound, outside).push(document()),
            Named(bound, outside).lock(lock_id),
            Named(bound, outside).get(),
        ):
            assert (answer.status_code, error_reason(answer)) == (404, "STATE_NOT_FOUND")
            *application, component, environment = outside.split("/")
            named = f'The state of component "{component}", environment "{environment}"'
            message = answer.json()["error"]["message"]
            assert message.startswith(named)
            assert [f'application "{name}"' in message for name in application] in ([], [True])
    assert set(Component.objects.values_list("application__slug", "slug")) == {
        ("shop", "network"), ("shop", "database"),
    }  # fmt: skip
    assert Application.objects.count() == 2

    # For IDs of an existing component its application decides. A new component has no application.
    other = Backend(bound)
    assert other.push(document()).status_code == 404
    component = Component.objects.create(application=shop)
    other.component_id = component.pk
    assert other.get().status_code == 404
    assert other.push(document()).status_code == 200
    assert other.get().content == document()
    # A moved component is outside from then on, also at its former address.
    network = Component.objects.get(slug="network")
    for moved in (component, network):
        body = {"component": {"application_id": str(bank.pk)}}
        assert client.send("PATCH", f"/api/v1/components/{moved.pk}", body).status_code == 200
    assert (other.get().status_code, other.push(document(2)).status_code) == (404, 404)
    for environment in ("prod", "staging"):
        answer = Named(bound, f"shop/network/{environment}").lock(uuid.uuid4())
        assert answer.status_code == 404
    assert not Environment.objects.filter(slug="staging").exists()


def test_binding_to_application_and_environment_requires_both(client_with: ClientWith) -> None:
    shop = Application.objects.create(name="shop", slug="shop")
    prod = Environment.objects.create(name="prod", slug="prod")
    columns = in_applications(shop.pk, environment_ids=frozenset({prod.pk}))
    bound = client_with(*ALL, **columns)

    assert Named(bound, "shop/network/prod").push(document()).status_code == 200
    assert Named(bound, "shop/network/staging").push(document()).status_code == 404
    assert Named(bound, "bank/network/prod").push(document()).status_code == 404


def test_scopes_are_required(
    client_with: ClientWith, anonymous: ApiClient, lock_id: uuid.UUID
) -> None:
    reader, writer = (Named(client_with(scope), "network/prod") for scope in ALL[:2])
    assert anonymous.get(reader.path).status_code == 401
    assert anonymous.get("/api/v1/state/at/UPPER/prod").status_code == 401
    assert reader.push(document()).status_code == 403
    assert reader.lock(lock_id).status_code == 403
    assert writer.get().status_code == 403
    assert writer.lock(lock_id).status_code == 200
    assert writer.unlock(None).status_code == 403
    assert writer.delete().status_code == 403
