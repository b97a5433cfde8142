"""Resources in the admin: the list, the detail page, and the search by identifier."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apikeys.models import AuditEvent
from states.admin import resources
from states.models import Component, Environment, ResourceEntry
from tests.states.conftest import Backend
from tests.states.indexed import index, with_things
from tests.states.samples import instance, path, resource, state
from tests.support.people import person, reads_of, statements, text_of

LIST = "/admin/states/resourceentry/"
FIND = f"{LIST}find/"


@pytest.fixture
def viewer(db: None) -> Client:
    return person("viewer")


@pytest.fixture
def network(backend: Backend) -> Backend:
    """A state of network in production, with a bucket."""
    backend.push(
        state(
            resource("logs", instance({"id": "logs-1", "arn": "arn:aws:s3:::logs"}), type="bucket"),
            resource("x", instance({"id": "i-1", "name": "swordfish"}, path("name"))),
        )
    )
    Component.objects.filter(pk=backend.component_id).update(name="network")
    Environment.objects.filter(pk=backend.environment_id).update(name="production")
    index()
    return backend


def find(client: Client, value: str, **more: str) -> str:
    return text_of(client.post(FIND, {"value": value, **more}))


@pytest.mark.parametrize(("group", "status"), [("", 403), ("viewer", 200), ("operator", 200)])
def test_pages_require_permissions(network: Backend, group: str, status: int) -> None:
    client = person(*filter(None, [group]))
    entry = ResourceEntry.objects.order_by("pk")[0]
    pages = [LIST, f"{LIST}{entry.pk}/change/", FIND]

    assert [client.get(page).status_code for page in pages] == [status] * 3
    assert client.post(FIND, {"value": "logs-1"}).status_code == status
    # Resources are derived from documents, so the admin is read-only.
    root = person(username="root", is_superuser=True)
    assert root.get(f"{LIST}add/").status_code == 403
    assert root.post(f"{LIST}{entry.pk}/change/", {"name": "x"}).status_code == 403
    assert root.post(f"{LIST}{entry.pk}/delete/").status_code == 403


def test_search_finds_the_state_of_a_resource(network: Backend, viewer: Client) -> None:
    answer = viewer.post(FIND, {"value": " arn:aws:s3:::logs "})

    assert "network in production bucket.logs 1" in text_of(answer)
    assert f'href="/admin/states/state/{network.record.pk}/change/"' in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    for value in ("arn:aws:s3:::log", "swordfish", "nothing"):
        assert "No states contain this value." in find(viewer, value), value
    page = text_of(viewer.get(f"{LIST}{ResourceEntry.objects.get(type='bucket').pk}/change/"))
    assert "network in production" in page
    assert "bucket.logs" in page


def test_search_value_is_accepted_only_by_post(network: Backend, viewer: Client) -> None:
    answer = viewer.get(FIND, {"value": "logs-1"})

    assert "bucket.logs" not in text_of(answer)
    assert "logs-1" not in answer.content.decode()
    strict = person("viewer", enforce_csrf_checks=True)
    assert strict.post(FIND, {"value": "logs-1"}).status_code == 403
    find(viewer, "logs-1")
    assert not AuditEvent.objects.filter(details__icontains="logs-1").exists()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({}, "This field is required."),
        ({"value": "  "}, "This field is required."),
        ({"value": "a\0b"}, "Null characters are not allowed."),
        ({"value": "x" * 10_001}, "at most 10000 characters"),
        ({"value": "x", "after": "[["}, "Correct the marked fields"),
    ],
)
def test_invalid_search_values_are_rejected(
    viewer: Client, given: dict[str, str], fault: str
) -> None:
    answer = viewer.post(FIND, given)

    assert fault in text_of(answer)
    assert "found" not in answer.context


def test_further_results_are_linked(
    backend: Backend, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "FOUND", 3)
    backend.push(with_things(1, **{f"n{number}": "same" for number in range(7)}))
    index()

    seen, after = [], ""
    for size in (3, 3, 1):
        with statements() as queries:
            context: Any = viewer.post(FIND, {"value": "same", "after": after}).context
        assert len(reads_of("states_resourceentry", queries)) == 1
        assert len(context["found"]) == size
        seen += [entry.address for entry in context["found"]]
        after = (context["next"] or ("", ""))[1]

    assert sorted(seen) == [f"thing.n{number}" for number in range(7)]
    assert after == ""


def test_further_states_with_an_address_are_linked(
    backend: Backend, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "FOUND", 3)
    backends = [Backend(backend.client) for _ in range(7)]
    for each in backends:
        each.push(with_things(1, x="1", xy="2"))
    index()

    seen: list[Any] = []
    address, after, counts = "", "", []
    for size in (3, 3, 1):
        given = {"value": "thing.x", "address": address, "after": after}
        answer = viewer.post(FIND, given)
        context: Any = answer.context
        assert len(context["found"]) == size
        seen += [(entry.address, entry.state_id) for entry in context["found"]]
        address, after = context["next"] or ("", "")
        counts.append(text_of(answer))

    assert sorted(seen) == sorted(("thing.x", each.record.pk) for each in backends)
    assert after == ""
    assert "Found 3+" in counts[0]
    assert "Found 1 " in counts[2]


def test_outdated_index_is_reported(network: Backend, viewer: Client) -> None:
    assert "not in the index yet" not in find(viewer, "logs-1")
    network.push(with_things(2, y="new-1"))

    assert "not in the index yet" in find(viewer, "new-1")


def test_the_list(network: Backend, viewer: Client) -> None:
    other = Backend(network.client)
    other.push(with_things(1, y="1"))
    index()

    for query, addresses in {
        "": ["bucket.logs", "thing.x", "thing.y"],
        f"state={network.record.pk}": ["bucket.logs", "thing.x"],
        "state=no-id": [],
        "type=thing": ["thing.x", "thing.y"],
        "q=LOGS": ["bucket.logs"],
        f"q=thing&state={other.record.pk}": ["thing.y"],
    }.items():
        shown = viewer.get(f"{LIST}?{query}").context["cl"].result_list
        assert sorted(entry.address for entry in shown) == addresses, query


def test_statements_do_not_grow_with_the_rows(network: Backend, viewer: Client) -> None:
    numbers = []
    for _ in range(2):
        with statements() as queries:
            viewer.get(LIST)
        numbers.append(len(queries))
        Backend(network.client).push(with_things(1, **{f"n{n}": str(n) for n in range(20)}))
        index()

    assert numbers[0] == numbers[1]


def test_a_state_leads_to_its_resources(network: Backend, viewer: Client) -> None:
    page = f"/admin/states/state/{network.record.pk}/change/"
    listed = f"{LIST}?state={network.record.pk}"

    answer = viewer.get(page)
    assert f'href="{listed}"' in answer.content.decode()
    assert "bucket.logs bucket " in text_of(answer)
    # Also for a document too large to read on each view of the page.
    network.push(state(outputs={"o": {"value": "x" * 600_000, "type": "string"}}, serial=2))
    assert "its resources in the index" in text_of(viewer.get(page))


def test_outputs_have_types_and_no_secrets(backend: Backend, viewer: Client) -> None:
    outputs = {
        "plain": {"value": "shown", "type": "string"},
        "several": {"value": ["a"], "type": ["list", "string"]},
        "secret": {"value": "swordfish", "type": "string", "sensitive": True},
        "copy": {"value": "x swordfish", "type": "string"},
    }
    backend.push(state(outputs=outputs))

    text = text_of(viewer.get(f"/admin/states/state/{backend.record.pk}/change/"))
    assert 'plain string "shown"' in text
    assert "several [ " in text
    assert "secret string (sensitive value)" in text
    assert "Contains the value of the output secret" in text
    assert "swordfish" not in text


def test_the_overview_has_no_second_search(db: None) -> None:
    assert f'action="{FIND}"' not in person("viewer").get("/admin/").content.decode()
