"""A slug, current or former, belongs to one entry; only an explicit slug takes a former slug."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apikeys.bindings import Binding
from states import addresses
from states.models import Application, Component, Environment, State
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import document
from tests.states.test_named import ALL, Named
from tests.states.test_slugs import KINDS, made, sent
from tests.support.people import person

WRITE = ("state:read", "state:write")


@pytest.fixture
def admin(client_with: ClientWith) -> ApiClient:
    return client_with(*ALL)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def refused(answer: Any, reason: str, **metadata: str) -> None:
    assert (answer.status_code, error_reason(answer)) == (409, reason)
    error = answer.json()["error"]
    assert (error["status"], error["details"][0]["metadata"]) == ("ALREADY_EXISTS", metadata)


def renamed(admin: ApiClient, kind: str, **fields: Any) -> str:
    """Return the ID of an entry whose former slug is ``old``."""
    entry: str = made(admin, kind, name="First", slug="old", **fields)["id"]
    assert sent(admin, "PATCH", kind, entry, slug="new").status_code == 200
    return entry


@pytest.mark.both
def test_a_former_slug_is_taken_for_a_caller_without_state_admin(
    admin: ApiClient, client_with: ClientWith, kind: str
) -> None:
    entry = renamed(admin, kind)
    named = {"id": entry, "name": "First"}

    answer = sent(client_with(*WRITE), "POST", kind, name="x", slug="old")
    refused(answer, "SLUG_TAKEN", **named)
    assert f'The other entry is the {kind} "First".' in answer.json()["error"]["message"]
    # Such a caller does not learn the name without read permission.
    refused(sent(client_with("state:write"), "POST", kind, name="x", slug="old"), "SLUG_TAKEN")
    assert str(addresses.find_id(KINDS[kind], "old")) == entry
    assert KINDS[kind].objects.count() == 1


@pytest.mark.both
@pytest.mark.parametrize(
    "body", [{"name": "x", "slug": "prod"}, {"name": "Prod"}, {"name": "prod"}]
)
def test_a_bound_token_takes_no_environment(
    admin: ApiClient, client_with: ClientWith, body: dict[str, str]
) -> None:
    """The address keeps working, and so does the lock requirement."""
    for component in ("payments", "toy"):
        assert Named(admin, f"{component}/prod").push(document()).status_code == 200
    environment = Environment.objects.get()
    changes = {"slug": "live", "require_lock": True}
    sent(admin, "PATCH", "environment", environment.pk, **changes)
    toy = Component.objects.get(slug="toy")

    for scopes in (WRITE, ALL):
        bound = client_with(*scopes, bound_component_ids=[str(toy.pk)])
        reason = "SLUG_TAKEN" if "slug" in body else "ALREADY_EXISTS"
        refused(
            sent(bound, "POST", "environment", **body), reason, id=str(environment.pk), name="prod"
        )
        # A token that does not see the environment learns no more than that.
        other = client_with(*scopes, bound_component_ids=[str(uuid.uuid4())])
        refused(sent(other, "POST", "environment", **body), reason)
    old = Named(admin, "payments/prod")
    assert old.get().content == document()
    assert error_reason(old.push(document(2))) == "LOCK_REQUIRED"


@pytest.mark.both
def test_bound_token_can_claim_slugs_only_of_entries_in_its_binding(
    admin: ApiClient, client_with: ClientWith
) -> None:
    shop, bank = (made(admin, "application", name=name)["id"] for name in ("shop", "bank"))
    first = renamed(admin, "component", application_id=shop)
    bound = client_with(*ALL, **Binding(application_ids=frozenset({uuid.UUID(shop)})).columns())
    environment = made(admin, "environment", name="staging")["id"]
    in_environment = client_with(*ALL, bound_environment_ids=[environment])
    fields = {"name": "Second", "slug": "old", "application_id": shop}

    # 1. A binding to an environment does not cover the whole component.
    renamed(admin, "component")
    refused(sent(in_environment, "POST", "component", name="Third", slug="old"), "SLUG_TAKEN")
    # 2. The component has moved out of the application.
    sent(admin, "PATCH", "component", first, application_id=bank)
    refused(sent(bound, "POST", "component", **fields), "SLUG_TAKEN")
    # 3. Both are inside.
    sent(admin, "PATCH", "component", first, application_id=shop)
    second = sent(bound, "POST", "component", **fields).json()["component"]["id"]
    assert str(addresses.find_id(Component, "old", uuid.UUID(shop))) == second
    # 4. Two components exchange their slugs.
    for entry, slug in ((second, "between"), (first, "old"), (second, "new")):
        assert sent(bound, "PATCH", "component", entry, slug=slug).status_code == 200
    found = [str(addresses.find_id(Component, s, uuid.UUID(shop))) for s in ("old", "new")]
    assert found == [first, second]


@pytest.mark.both
@pytest.mark.parametrize("steps", ["move, name", "name and move", "form"])
def test_a_name_moves_no_address(admin: ApiClient, steps: str) -> None:
    """In two requests, in one PATCH, and in the form of the admin."""
    assert Named(admin, "shop/network/prod").push(document(1)).status_code == 200
    shop, first = Application.objects.get(), Component.objects.get()
    sent(admin, "PATCH", "component", first.pk, slug="vpc")
    unnamed = Component.objects.create()
    into = {"application_id": str(shop.pk)}

    if steps == "form":
        path = f"/admin/states/component/{unnamed.pk}/change/"
        person("administrator").post(path, {"name": "Network", "application": "shop"})
    else:
        changes = (
            [into, {"name": "Network"}] if steps == "move, name" else [{**into, "name": "Network"}]
        )
        for change in changes:
            assert sent(admin, "PATCH", "component", unnamed.pk, **change).status_code == 200
    unnamed.refresh_from_db()
    assert (unnamed.slug, unnamed.application_id) == ("network-2", shop.pk)
    assert Named(admin, "shop/network/prod").get().content == document(1)


def test_a_move_takes_no_address_unless_the_slug_is_sent(admin: ApiClient) -> None:
    shop = made(admin, "application", name="shop")["id"]
    first = renamed(admin, "component", application_id=shop)
    second = made(admin, "component", name="Second", slug="old")["id"]

    answer = sent(admin, "PATCH", "component", second, application_id=shop)
    refused(answer, "SLUG_TAKEN", id=first, name="First")
    answer = sent(admin, "PATCH", "component", second, application_id=shop, slug="old")
    assert answer.status_code == 200
    assert str(addresses.find_id(Component, "old", uuid.UUID(shop))) == second


@pytest.mark.both
def test_the_same_name_again(admin: ApiClient, kind: str) -> None:
    first = made(admin, kind, name="payments")["id"]
    for name in ("payments", "Payments", "PAYMENTS", "payments!", "\uff50ayments"):
        refused(sent(admin, "POST", kind, name=name), "ALREADY_EXISTS", id=first, name="payments")
    # The same for an entry with an explicit slug.
    second = made(admin, kind, name="Billing", slug="money")["id"]
    refused(sent(admin, "POST", kind, name="Billing"), "ALREADY_EXISTS", id=second, name="Billing")
    assert made(admin, kind, name="payments", slug_suffix=True)["slug"] == "payments-2"
    assert made(admin, kind, name="payments", slug="other")["slug"] == "other"
    assert KINDS[kind].objects.count() == 4


def test_names_without_latin_letters_get_numbered_slugs(admin: ApiClient, kind: str) -> None:
    first = made(admin, kind, name="Сеть")
    assert first["slug"] == kind
    assert made(admin, kind, name="Мост")["slug"] == f"{kind}-2"
    for name in ("Сеть", "Мост"):
        assert sent(admin, "POST", kind, name=name).status_code == 409


def test_the_same_name_in_another_application(admin: ApiClient) -> None:
    parents = [None, *(made(admin, "application", name=name)["id"] for name in ("shop", "bank"))]
    for parent in parents:
        made(admin, "component", name="network", application_id=parent)
    for parent in parents:
        answer = sent(admin, "POST", "component", name="network", application_id=parent)
        assert error_reason(answer) == "ALREADY_EXISTS"


@pytest.mark.parametrize("odd", ["true", 1, None, []])
def test_slug_suffix_is_true_or_false(admin: ApiClient, kind: str, odd: Any) -> None:
    assert sent(admin, "POST", kind, name="a", slug_suffix=odd).status_code == 400


def test_slug_suffix_has_no_effect_in_a_patch(admin: ApiClient, kind: str) -> None:
    entry = made(admin, kind, name="a")
    assert "slug_suffix" not in entry
    answer = sent(admin, "PATCH", kind, entry["id"], slug_suffix=True)
    assert (answer.status_code, answer.json()[kind]) == (200, entry)


def test_the_admin_names_the_entry_that_exists(db: None, kind: str) -> None:
    client = person("administrator")
    for _ in range(2):
        answer = client.post(f"/admin/states/{kind}/add/", {"name": "billing"}, follow=True)
    assert f"The other entry is the {kind} &quot;billing&quot;." in answer.content.decode()
    assert KINDS[kind].objects.count() == 1


def test_first_push_after_a_rename_creates_no_entries(
    admin: ApiClient, client_with: ClientWith
) -> None:
    assert Named(admin, "payments/prod").push(document(1)).status_code == 200
    component, environment = Component.objects.get(), Environment.objects.get()
    sent(admin, "PATCH", "component", component.pk, slug="billing")
    sent(admin, "PATCH", "environment", environment.pk, slug="live")

    for names in ("payments/prod", "billing/prod", "payments/live"):
        assert Named(client_with(*WRITE), names).get().content == document(1)
    answer = Named(client_with(*WRITE), "payments/prod").push(document(2))
    assert answer.status_code == 200
    assert State.objects.count() == Component.objects.count() == Environment.objects.count() == 1
