"""Bound keys and tokens: entries outside the binding appear as missing."""

import uuid
from typing import Any

import pytest

from apikeys.bindings import EVERYWHERE, Binding
from apikeys.models import ApiKey
from states.models import Application, Component
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith, violations
from tests.apikeys.exchanging import Pipeline
from tests.conftest import error_reason

A, B = uuid.UUID(int=1), uuid.UUID(int=2)
ONE, BOTH = frozenset({A}), frozenset({A, B})
BINDINGS = {
    "everywhere": EVERYWHERE,
    "cluster": Binding(cluster_id=A),
    "component": Binding(component_ids=ONE),
    "components": Binding(component_ids=BOTH),
    "environment": Binding(environment_ids=ONE),
    "both": Binding(component_ids=ONE, environment_ids=ONE),
    "application": Binding(application_ids=ONE),
    "component of the application": Binding(component_ids=ONE, application_ids=ONE),
}
SCOPES = ("apikey:read", "apikey:write", "state:read", "state:write")


@pytest.fixture
def keys(key_with: KeyWith) -> dict[str, KeyOwner]:
    """A key for each binding, by its name."""
    return {name: key_with(*SCOPES, name=name, binding=b) for name, b in BINDINGS.items()}


@pytest.mark.both
@pytest.mark.parametrize("caller", BINDINGS)
def test_list_is_limited_to_the_binding(keys: dict[str, KeyOwner], caller: str) -> None:
    listed = [key["name"] for key in keys[caller].get("/v1/api-keys").json()["api_keys"]]

    inside = [name for name, b in BINDINGS.items() if b.is_within(BINDINGS[caller])]
    assert listed == inside
    assert caller in listed
    for name, other in keys.items():
        expected = 200 if name in inside else 404
        assert keys[caller].get(other.path).status_code == expected


def test_keys_outside_the_binding_are_missing(keys: dict[str, KeyOwner]) -> None:
    bound, free = keys["component"], keys["everywhere"]

    for response in (
        bound.send("PATCH", free.path, {"name": "x"}),
        bound.send("POST", free.path + ":rotate"),
        bound.send("POST", free.path + ":revoke"),
    ):
        assert (response.status_code, error_reason(response)) == (404, "API_KEY_NOT_FOUND")


def create(client: KeyClient, path: str = "/v1/api-keys", **fields: Any) -> Any:
    return client.send("POST", path, {"name": "new", "scopes": ["state:read"], **fields})


@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/access-tokens"])
def test_default_binding_is_the_binding_of_the_creator(
    keys: dict[str, KeyOwner], path: str
) -> None:
    answer = create(keys["components"], path).json()

    assert (answer.get("api_key") or answer["access_token"])["binding"] == {
        "cluster_id": None, "component_ids": [str(A), str(B)], "environment_ids": None,
        "application_ids": None,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize("caller", BINDINGS)
def test_binding_cannot_exceed_the_binding_of_the_caller(
    keys: dict[str, KeyOwner], caller: str
) -> None:
    Component.objects.create(pk=A, application=Application.objects.create(pk=A))
    own = BINDINGS[caller]
    for path in ("/v1/api-keys", "/v1/access-tokens"):
        for name, wanted in BINDINGS.items():
            given = wanted.within_applications_of(own)
            expected: tuple[int, Any] = (403, "GRANT_EXCEEDED")
            if own.application_ids and B in (given.component_ids or ()):
                # With a binding to applications, a component without an application is missing.
                expected = (400, "INVALID_FIELDS")
            elif given.is_within(own):
                expected = (201, given.described())

            response = create(keys[caller], path, binding=wanted.described())

            if response.status_code == 201:
                result = next(iter(response.json().values()))["binding"]
            else:
                result = error_reason(response)
            assert (response.status_code, result) == expected, (path, name)


def test_a_binding_may_be_narrowed_and_not_widened(keys: dict[str, KeyOwner]) -> None:
    caller, target = keys["components"], keys["component"]
    narrower = {"component_ids": [str(A)], "environment_ids": [str(B)]}

    assert caller.send("PATCH", target.path, {"binding": narrower}).status_code == 200
    assert target.key.binding == Binding(component_ids=ONE, environment_ids=frozenset({B}))
    assert target.send("PATCH", target.path, {"binding": narrower}).status_code == 200
    response = target.send("PATCH", target.path, {"binding": None})
    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")
    wider = {"component_ids": [str(A), str(B)]}
    assert caller.send("PATCH", target.path, {"binding": wider}).status_code == 200


def test_a_minted_token_is_bound_as_its_key_is_now(keys: dict[str, KeyOwner]) -> None:
    key = keys["everywhere"]
    minted = KeyClient(create(key, "/v1/access-tokens").json()["secret"])
    path = f"/api/v1/state/{A}/env/{A}"
    assert error_reason(minted.get(path)) == "STATE_NOT_FOUND"  # inside, and nothing is stored
    writer = KeyClient(create(key, "/v1/access-tokens", scopes=["state:write"]).json()["secret"])
    document = {"version": 4, "serial": 1, "lineage": "x"}
    assert writer.send("POST", path, document).status_code == 200
    assert minted.get(path).status_code == 200

    ApiKey.objects.filter(pk=key.key_id).update(bound_component_ids=[str(B)])

    assert minted.get(path).status_code == 404


def test_an_empty_binding_is_not_inherited(key_with: KeyWith, pipeline: Pipeline) -> None:
    """The key of a bound token was bound to another component."""
    scopes = ["apikey:write", "federation:write", "state:read", "webhook:write"]
    key = key_with(*scopes)
    grant = {"scopes": scopes, "binding": {"component_ids": [str(A)]}}
    token = KeyClient(create(key, "/v1/access-tokens", **grant).json()["secret"])
    ApiKey.objects.filter(pk=key.key_id).update(bound_component_ids=[str(B)])
    policy = {"issuer_id": pipeline.issuer.pk, "conditions": pipeline.policy.conditions}
    hook = {"name": "hook", "url": "https://hooks.example.com", "event_types": ["state.push"]}

    for answer in (
        create(token),
        create(token, "/v1/trust-policies", **policy),
        token.send("POST", "/api/v1/webhooks", hook),
    ):
        assert (answer.status_code, error_reason(answer)) == (403, "GRANT_EXCEEDED")


def test_the_placeholder_of_an_application_is_no_component(key_with: KeyWith) -> None:
    """With an application, the row would be read as a binding to all components."""
    binding = {"component_ids": [str(uuid.UUID(int=0))], "application_ids": [str(A)]}

    answer = create(key_with(*SCOPES), binding=binding)

    assert violations(answer) == [("binding.component_ids.0", "UNKNOWN_COMPONENT")]
