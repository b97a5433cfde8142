"""Slugs of applications, components and environments: form, uniqueness, and former slugs."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from apikeys.actors import Actor
from states import addresses, slugs
from states.actions import catalogue
from states.actions.registration import find_or_register
from states.errors import SlugTaken
from states.models import Application, Component, Environment, SlugClaim, State, of_state
from states.targets import StateTarget
from tests.conftest import ApiClient, ClientWith, error_reason

KINDS = {"application": Application, "component": Component, "environment": Environment}
ACTOR = Actor(name="test")
OF_THE_FORM = ("a", "0", "a-b", "a--b", "network", "x" * 63, "deadbeef", "1-2-3", "lock-2")
OF_NO_FORM = (
    "", "-a", "a-", "A", "a.b", "a_b", "a/b", "a b", "é", "x" * 64, "٣",
    "01941f29-7c00-7d82-b082-532b629f6fbe", "01941f297c007d82b082532b629f6fbe",
)  # fmt: skip


@pytest.fixture
def admin(client_with: ClientWith) -> ApiClient:
    return client_with("state:read", "state:write", "state:admin")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sent(client: ApiClient, method: str, kind: str, entry: Any = None, **fields: Any) -> Any:
    tail = f"/{entry}" if entry else ""
    return client.send(method, f"/api/v1/{kind}s{tail}", {kind: fields})


def made(client: ApiClient, kind: str, **fields: Any) -> dict[str, Any]:
    answer = sent(client, "POST", kind, **fields)
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()[kind]
    return found


def reason_of(answer: Any) -> str:
    return str(answer.json()["error"]["details"][1]["field_violations"][0]["reason"])


def test_names_without_characters_of_slugs_share_the_slug_of_the_kind(
    admin: ApiClient, kind: str
) -> None:
    slugs = [made(admin, kind, name=name)["slug"] for name in ("Ж", "Ю", "Я")]

    assert slugs == [kind, f"{kind}-2", f"{kind}-3"]


@pytest.mark.parametrize("text", OF_THE_FORM)
def test_slug_has_the_documented_form(admin: ApiClient, kind: str, text: str) -> None:
    assert made(admin, kind, name="x", slug=text)["slug"] == text


@pytest.mark.parametrize("text", OF_NO_FORM)
def test_invalid_slugs_are_rejected(admin: ApiClient, kind: str, text: str) -> None:
    answer = sent(admin, "POST", kind, name="x", slug=text)

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
    for slug in (text[:62] + "-", f"{text[:60]}a\n"):
        with pytest.raises(IntegrityError, match=f"{kind}_slug_form"), transaction.atomic():
            KINDS[kind]._default_manager.create(slug=slug)


def test_lock_is_no_environment(admin: ApiClient) -> None:
    assert made(admin, "component", name="x", slug="lock")["slug"] == "lock"
    answer = sent(admin, "POST", "environment", name="x", slug="lock")
    assert (answer.status_code, reason_of(answer)) == (400, "FORM")
    assert made(admin, "environment", name="Lock")["slug"] == "environment-lock"
    with pytest.raises(IntegrityError, match="environment_slug_form"), transaction.atomic():
        Environment.objects.create(slug="lock")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Network", "network"),
        ("prod_eu.west/1", "prod-eu-west-1"),
        ("Café  №1", "cafe-1"),
        ("Сеть", "environment"),
        ("--", "environment"),
        ("n" * 70, "n" * 63),
        ("01941f29-7c00-7d82-b082-532b629f6fbe",
         "environment-01941f29-7c00-7d82-b082-532b629f6fbe"),
    ],
)  # fmt: skip
def test_a_slug_is_made_of_the_name(admin: ApiClient, name: str, slug: str) -> None:
    assert made(admin, "environment", name=name)["slug"] == slug


def test_choices_are_slugs_and_no_two_are_the_same() -> None:
    for name in ("", "a", "n" * 70, "a" * 62 + "-b", "01941f29-7c00-7d82-b082-532b629f6fbe"):
        found = slugs.choices(name, "environment", uuid.uuid4())
        assert len(set(found)) == len(found)
        assert all(slugs.is_slug(text, "environment") for text in found)


def test_the_same_name_again_gets_a_suffix_on_request(admin: ApiClient, kind: str) -> None:
    found = [made(admin, kind, name="network", slug_suffix=True)["slug"] for _ in range(11)]

    assert found[:9] == ["network", *(f"network-{number}" for number in range(2, 10))]
    assert len(set(found)) == 11
    assert made(admin, kind, name="network", slug=None, slug_suffix=True)["slug"] not in found


@pytest.mark.both
def test_a_slug_is_unique(admin: ApiClient, kind: str) -> None:
    made(admin, kind, name="a", slug="network")
    second = made(admin, kind, name="b")

    for answer in (
        sent(admin, "POST", kind, name="a", slug="network"),
        sent(admin, "PATCH", kind, second["id"], slug="network"),
    ):
        assert (answer.status_code, error_reason(answer)) == (409, "SLUG_TAKEN")
        assert answer.json()["error"]["status"] == "ALREADY_EXISTS"
    assert KINDS[kind]._default_manager.count() == 2


def test_a_component_has_its_slug_in_its_application(admin: ApiClient) -> None:
    one, two = (made(admin, "application", name=name)["id"] for name in ("one", "two"))
    for parent in (None, one, two):
        shown = made(admin, "component", name="x", slug="network", application_id=parent)
        assert shown["slug"] == "network"
    for parent in (None, one):
        answer = sent(admin, "POST", "component", name="x", slug="network", application_id=parent)
        assert error_reason(answer) == "SLUG_TAKEN"
    # A move into an application with the same slug is refused too.
    answer = sent(admin, "PATCH", "component", shown["id"], application_id=one)
    assert error_reason(answer) == "SLUG_TAKEN"
    assert str(Component.objects.get(pk=shown["id"]).application_id) == two


def test_a_name_may_change_and_the_slug_stays(admin: ApiClient, kind: str) -> None:
    entry = made(admin, kind, name="network")
    for fields in ({"name": "Networks"}, {"name": "Nets", "slug": None}):
        answer = sent(admin, "PATCH", kind, entry["id"], **fields)
        assert answer.json()[kind]["slug"] == "network"


def test_entry_created_by_a_push_gets_a_slug_with_its_name(admin: ApiClient, kind: str) -> None:
    entry = KINDS[kind]._default_manager.create()
    made(admin, kind, name="network")

    assert admin.get(f"/api/v1/{kind}s/{entry.pk}").json()[kind]["slug"] is None
    answer = sent(admin, "PATCH", kind, entry.pk, name="network")
    assert answer.json()[kind]["slug"] == "network-2"


def test_a_former_slug_is_found_until_another_entry_has_it(admin: ApiClient, kind: str) -> None:
    model = KINDS[kind]
    first = made(admin, kind, name="old")["id"]
    sent(admin, "PATCH", kind, first, slug="new")

    for slug in ("old", "new"):
        assert str(addresses.find_id(model, slug)) == first
    # A name does not take it over.
    assert made(admin, kind, name="old", slug_suffix=True)["slug"] == "old-2"
    second = made(admin, kind, name="x", slug="old")["id"]
    assert str(addresses.find_id(model, "old")) == second
    # Nor does the first get it back when the second goes.
    sent(admin, "PATCH", kind, second, slug="newer")
    assert str(addresses.find_id(model, "old")) == second
    assert addresses.find_id(model, "other") is None


def test_a_component_that_is_moved_is_found_where_it_was(admin: ApiClient) -> None:
    shop = made(admin, "application", name="shop")["id"]
    component = made(admin, "component", name="network")["id"]
    sent(admin, "PATCH", "component", component, application_id=shop)

    names = addresses.Names("network", "production")
    for at in (names, names._replace(application="shop")):
        place = addresses.find_place(at)
        assert (str(place.component_id), str(place.application_id)) == (component, shop)
    assert addresses.find_place(names._replace(application="other")) == (None, None, None)


@pytest.mark.both
def test_lists_are_filtered_by_slug(admin: ApiClient, kind: str) -> None:
    for name in ("a", "b", "c"):
        made(admin, kind, name=name)

    for text, found in {
        "field['slug'] = 'b'": ["b"],
        "field['slug'] IN ('a', 'c')": ["a", "c"],
        "field['slug'] != 'a'": ["b", "c"],
    }.items():
        for size in (1, 100):
            items = admin.items(f"/api/v1/{kind}s", f"{kind}s", page_size=size, filter=text)
            assert [item["slug"] for item in items] == found


@pytest.fixture
def eight(admin: ApiClient) -> None:
    """Two components with equal slugs in two applications, two without; each in two places."""
    parents = [made(admin, "application", name=name)["id"] for name in ("shop", "bank")]
    components = [
        made(admin, "component", name="network", application_id=parents[0])["id"],
        made(admin, "component", name="network", application_id=parents[1])["id"],
        made(admin, "component", name="network")["id"],
        made(admin, "component", name="database")["id"],
    ]
    for name in ("staging", "production"):
        environment = uuid.UUID(made(admin, "environment", name=name)["id"])
        for component in components:
            target = StateTarget(component_id=uuid.UUID(component), environment_id=environment)
            find_or_register(target=target, actor=ACTOR)
    find_or_register(
        target=StateTarget(component_id=uuid.uuid4(), environment_id=uuid.uuid4()), actor=ACTOR
    )


@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("field['component'] = 'network'", 6),
        ("field['component'] = 'database'", 2),
        ("field['component'] = 'network' AND field['environment'] = 'staging'", 3),
        ("field['application'] = 'shop'", 2),
        ("field['application'] = 'shop' AND field['environment'] IN ('staging', 'x')", 1),
        ("field['environment'] = 'nothing'", 0),
        ("field['environment'] != 'nothing'", 9),
        ("NOT field['component'] = 'network'", 3),
        ("field['component'] NOT IN ('network', 'database')", 1),
        ("field['component'] = 'database' OR field['environment'] = 'production'", 5),
    ],
)
def test_states_are_filtered_by_slugs(
    admin: ApiClient, eight: None, text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = admin.items("/api/v1/states", "states")
    for most in (1_000, 1):  # ids that are looked up, and more than that
        monkeypatch.setattr(of_state, "_MOST_IDS", most)
        for size in (1, 100):
            found = admin.items("/api/v1/states", "states", page_size=size, filter=text)
            assert len(found) == count
            assert found == [state for state in everything if state in found]


def test_states_show_names_and_slugs(admin: ApiClient, eight: None) -> None:
    text = "field['application'] = 'shop' AND field['environment'] = 'production'"
    (shown,) = admin.items("/api/v1/states", "states", filter=text)
    names = {name: value for name, value in shown.items() if name.endswith(("_name", "_slug"))}

    assert names == {
        "application_slug": "shop",
        "component_name": "network",
        "component_slug": "network",
        "environment_name": "production",
        "environment_slug": "production",
    }
    assert admin.get(f"/api/v1/states/{shown['id']}").json() == {"state": shown}


def test_filter_by_slug_needs_a_single_additional_query(admin: ApiClient, eight: None) -> None:
    environment = Environment.objects.get(slug="staging").pk

    def queries(text: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            admin.get("/api/v1/states", {"filter": text})
        return len(captured)

    by_id = queries(f"field['environment_id'] = '{environment}'")
    assert queries("field['environment'] = 'staging'") == by_id + 1


@pytest.mark.parametrize("claimed", [True, False])
def test_another_entry_gets_the_slug_at_the_same_moment(
    db: None, monkeypatch: pytest.MonkeyPatch, claimed: bool
) -> None:
    """A release before 1.1 inserts the entry without a claim."""
    find = addresses.find_id

    def found_before(model: Any, slug: str, parent_id: uuid.UUID = addresses.NO_PARENT) -> Any:
        found = find(model, slug, parent_id)
        if not Environment.objects.exists():
            other = Environment.objects.create(name="prod", slug="prod")
            if claimed:
                SlugClaim.objects.create(
                    kind="environment", parent_id=parent_id, slug="prod", entry_id=other.pk
                )
        return found

    monkeypatch.setattr(addresses, "find_id", found_before)
    new: dict[str, Any] = {"model": Environment, "fields": {"name": "prod"}, "actor": ACTOR}
    if claimed:
        assert catalogue.create(**new, slug_suffix=True).slug == "prod-2"
    else:
        with pytest.raises(SlugTaken, match="Another entry has or had this slug"):
            catalogue.create(**new, slug_suffix=True)


def test_a_state_is_shown_with_its_path(db: None) -> None:
    state = find_or_register(
        target=StateTarget(component_id=uuid.uuid4(), environment_id=uuid.uuid4()), actor=ACTOR
    )
    by_ids = f"/api/v1/state/{state.component_id}/env/{state.environment_id}"

    def path() -> str:
        return addresses.path_of(State.objects.get(pk=state.pk))

    assert path() == by_ids
    Component.objects.update(slug="network")
    assert path() == by_ids
    Environment.objects.update(slug="prod")
    assert path() == "/api/v1/state/at/network/prod"
    shop = Application.objects.create()
    Component.objects.update(application=shop)
    assert path() == by_ids
    Application.objects.update(slug="shop")
    assert path() == "/api/v1/state/at/shop/network/prod"
