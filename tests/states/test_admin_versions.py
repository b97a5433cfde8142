"""The versions of a state in the admin: their list and charts, documents, and differences."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import astuple

from apikeys.models import AuditEvent
from states.admin import contents_page, state_page
from states.admin.comparison import CHANGES
from states.admin.state_page import VERSIONS
from states.admin.values import MOST_ROWS, MOST_SHOWN
from states.models import State, StateVersion
from tests.states.conftest import Backend, document
from tests.states.samples import AFTER, BEFORE, ENCRYPTED, PASSWORDS
from tests.support.people import person, statements, text_of

HIDDEN = "(sensitive value)"


def page(backend: Backend, name: str = "change/") -> str:
    return f"/admin/states/state/{backend.record.pk}/{name}"


def compared(backend: Backend, before: Any, after: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return page(backend, "compare/"), {"before": before, "after": after, **more}


@pytest.fixture
def recorded(admin: Backend) -> Backend:
    """A state with the two recorded documents, which have passwords."""
    assert admin.push(BEFORE).status_code == 200
    assert admin.push(AFTER, "?force=true").status_code == 200
    return admin


def test_page_shows_versions_and_charts(recorded: Backend) -> None:
    answer = person("viewer").get(page(recorded))

    text = text_of(answer)
    sizes = f"version 1: {len(BEFORE):,} bytes, version 2: {len(AFTER):,} bytes"
    assert sizes in text
    assert "2 current" in text
    assert "in version 2" in text
    assert "in version 1" not in text, "there is none before it"
    assert "Download" not in text
    assert "Restore" not in text

    assert "Restore version 1" in text_of(person("operator").get(page(recorded)))
    assert "Restore version 2" not in text_of(person("operator", "viewer").get(page(recorded)))
    assert "Download version 2" in text_of(person("administrator").get(page(recorded)))


def test_a_single_version_has_no_button_to_compare(admin: Backend) -> None:
    assert admin.push(document(1)).status_code == 200
    assert "Compare versions" not in text_of(person("viewer").get(page(admin)))
    assert admin.push(document(2)).status_code == 200
    assert "Compare versions" in text_of(person("operator").get(page(admin)))


def test_state_without_versions_is_shown(backend: Backend, lock_id: Any) -> None:
    assert backend.lock(lock_id).status_code == 200
    assert "No versions." in text_of(person("viewer").get(page(backend)))


def test_version_after_an_unreadable_version_has_no_changes(backend: Backend) -> None:
    for serial in range(1, 5):
        outputs = {"a": {"value": serial, "type": "number"}}
        assert backend.push(document(serial, outputs=outputs)).status_code == 200
    StateVersion.objects.filter(number=2).update(encryption_key="unknown")

    answer = person("viewer").get(page(backend))

    shown = {version.number: changes for version, _, changes, _ in answer.context["versions"]}
    assert [number for number, changes in shown.items() if changes is None] == [3, 2]


@pytest.mark.slow
def test_a_page_of_versions_is_bounded_and_costs_the_same(backend: Backend) -> None:
    assert backend.push(document(1)).status_code == 200
    client = person("viewer")
    with statements() as one:
        client.get(page(backend))
    first = StateVersion.objects.get()
    StateVersion.objects.bulk_create(
        StateVersion(
            state=backend.record, number=number, serial=number, md5=first.md5, size_bytes=number,
            document=b"x", encryption_key="k", created_by="ada", token_id=first.token_id,
        )
        for number in range(2, VERSIONS + 21)
    )  # fmt: skip

    with statements() as many:
        newest = client.get(page(backend))
    assert len(one) == len(many)
    (listed,) = [sql for sql in many if 'FROM "states_stateversion"' in sql and "LIMIT" in sql]
    assert '"document"' not in listed, "documents were not moved"
    numbers = [version.number for version, *_ in newest.context["versions"]]
    assert numbers == list(range(VERSIONS + 20, 20, -1))
    assert "Changes in version 21" in text_of(newest)

    older = client.get(page(backend), {"versions_before": "21"})
    numbers = [version.number for version, *_ in older.context["versions"]]
    assert numbers == list(range(20, 0, -1))
    for odd in ("", "x", "-1", "9" * 5000, "²"):
        assert client.get(page(backend), {"versions_before": odd}).status_code == 200, odd


def test_a_document_as_it_was_pushed(recorded: Backend) -> None:
    client = person("administrator")
    name = page(recorded, "versions/1/document/")
    answer = client.get(name)

    assert (answer.status_code, answer.content) == (200, BEFORE)
    assert "no-store" in answer["Cache-Control"]
    disposition = (
        f'attachment; filename="{recorded.component_id}-{recorded.environment_id}-1.tfstate"'
    )
    assert answer["Content-Disposition"] == disposition
    event = AuditEvent.objects.order_by("-id")[0]
    assert (event.action, event.actor_name) == ("state.read", "administrator-person")
    assert event.details == {"version": 1}

    gone = client.get(page(recorded, "versions/9/document/"), follow=True)
    assert "The state has no version with this number" in text_of(gone)
    for number in (0, 2**31, 2**70):
        assert client.get(page(recorded, f"versions/{number}/document/")).status_code == 302


@pytest.mark.parametrize("group", ["viewer", "operator"])
def test_difference_hides_secrets(recorded: Backend, group: str) -> None:
    answer = person(group).get(*compared(recorded, 1, 2))

    text = text_of(answer)
    assert "Sensitive values are hidden." in text
    assert HIDDEN in text
    assert not [password for password in PASSWORDS if password in answer.content]
    assert "no-store" in answer["Cache-Control"]
    events = AuditEvent.objects.filter(actor_name=f"{group}-person").order_by("id")
    assert [(event.action, event.details) for event in events] == [
        ("state.read", {"version": number, "part": "diff", "secrets": False}) for number in (1, 2)
    ]


def test_difference_shows_secrets_with_permission(recorded: Backend) -> None:
    client = person("administrator")
    address, query = compared(recorded, 1, 2)
    hidden = client.get(address, query)
    assert "Sensitive values are hidden. Show sensitive values" in text_of(hidden)
    assert not [password for password in PASSWORDS if password in hidden.content]
    # The click; no link and no reload of a link does the same.
    answer = client.post(f"{address}?{urlencode(query)}")

    assert "Sensitive values are shown." in text_of(answer)
    assert "no-store" in answer["Cache-Control"]
    assert HIDDEN not in text_of(answer)
    assert all(password in answer.content for password in PASSWORDS)
    assert AuditEvent.objects.order_by("-id")[0].details["secrets"] is True


def test_comparison_page_matches_the_api(recorded: Backend, seeing: Backend) -> None:
    diff = seeing.look("/versions/2/diff").json()["diff"]
    address, query = compared(recorded, 1, 2)
    text = text_of(person("administrator").post(f"{address}?{urlencode(query)}"))

    for kind in ("resources", "outputs"):
        counts = ", ".join(
            f"{diff['summary'][kind][name]} {name}" for name in ("added", "changed", "removed")
        )
        assert f"{kind.capitalize()}: {counts}." in text
    for change in diff["resources"]:
        assert change["action"].lower() in text
        for attribute in change["attributes"]:
            assert attribute["path"] in text


def test_difference_is_paginated(admin: Backend) -> None:
    def outputs(value: str) -> dict[str, Any]:
        return {f"o{n:03}": {"value": f"{value}{n}", "type": "string"} for n in range(CHANGES + 5)}

    admin.push(document(1, outputs=outputs("old-")))
    admin.push(document(2, outputs=outputs("new-")))
    client = person("viewer")

    first = text_of(client.get(*compared(admin, 1, 2)))
    assert f"Outputs: 0 added, {CHANGES + 5} changed, 0 removed." in first
    assert f"o{CHANGES - 1:03}" in first
    assert f"o{CHANGES:03}" not in first
    assert "More changes" in first
    second = text_of(client.get(*compared(admin, 1, 2, start=CHANGES)))
    assert (
        f'output o{CHANGES:03} Attribute Before After value "old-{CHANGES}" "new-{CHANGES}"'
        in second
    )
    assert "More changes" not in second
    assert "No more differences." in text_of(client.get(*compared(admin, 1, 2, start=999)))
    assert "No differences." in text_of(client.get(*compared(admin, 2, 2)))


def test_a_long_value_is_cut(admin: Backend) -> None:
    for serial in (1, 2):
        value = f"{serial}" * (2 * MOST_SHOWN)
        admin.push(document(serial, outputs={"long": {"value": value, "type": "string"}}))

    answer = person("viewer").get(*compared(admin, 1, 2))
    assert f"… and {MOST_SHOWN + 2:,}".replace(",", "") in text_of(answer)
    assert len(answer.content) < 6 * MOST_SHOWN + 20_000


def test_the_rows_of_a_page_are_bounded(admin: Backend) -> None:
    """Also where few changes have many, and where names are long."""

    def resource(name: str, value: str) -> dict[str, Any]:
        attributes = {f"a{n:03}": value for n in range(MOST_ROWS - 100)}
        return {
            "mode": "managed", "type": "test", "name": name, "provider": "p",
            "instances": [{"attributes": {**attributes, "k" * 5000: value}}],
        }  # fmt: skip

    for serial, value in ((1, "old"), (2, "new")):
        resources = [resource(name, value) for name in ("one", "two", "three")]
        admin.push(document(serial, resources=resources))

    answer = person("viewer").get(*compared(admin, 1, 2))

    assert answer.content.count(b'<tr><th scope="row" class="identifier" data-label=') == MOST_ROWS
    for more in (2 * (MOST_ROWS - 99) - MOST_ROWS, MOST_ROWS - 99):
        assert f"{more} more attributes differ. This page shows at most" in text_of(answer)
    assert b"k" * 2001 not in answer.content


def test_changes_are_in_the_order_of_addresses(admin: Backend) -> None:
    def counted(attribute: str) -> dict[str, Any]:
        keys = [10, 9, "b", 2, None, "a"]
        instances = [{"index_key": key, "attributes": {"x": attribute}} for key in keys]
        return {
            "mode": "managed", "type": "test", "name": "web", "provider": "p",
            "instances": instances,
        }  # fmt: skip

    for serial, value in ((1, "old"), (2, "new")):
        admin.push(document(serial, resources=[counted(value)]))

    changes = person("viewer").get(*compared(admin, 1, 2)).context["comparison"].changes
    keys = ["", "[2]", "[9]", "[10]", '["a"]', '["b"]']
    assert [change["address"] for change in changes] == [f"test.web{key}" for key in keys]


def resources_of(*names: str, value: str = "x") -> list[dict[str, Any]]:
    instances = [{"attributes": {"input": value}}]
    return [
        {"mode": "managed", "type": "test", "name": name, "provider": "p", "instances": instances}
        for name in names
    ]


def test_changes_of_each_version_are_shown(admin: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    admin.push(document(1, resources=resources_of("a", "b")))
    admin.push(document(2, resources=resources_of("b", "c", "d", value="y")))
    admin.push(document(3, resources=resources_of("b", "c", "d", value="y")))
    output = {"o": {"value": 1, "type": "number"}}
    admin.push(document(4, resources=resources_of("b", "c", "d", value="y"), outputs=output))
    admin.push(ENCRYPTED, "?force=true")
    admin.push(document(6), "?force=true")
    client = person("viewer")

    def diffs() -> list[Any]:
        return [change for *_, change, _ in client.get(page(admin)).context["versions"]]

    with statements() as queries:
        found = diffs()
    assert found[:2] == [None, None], "an encrypted one cannot be read"
    assert [astuple(change.summary.resources) for change in found[2:]] == [
        (0, 0, 0), (0, 0, 0), (2, 1, 1), (2, 0, 0),
    ]  # fmt: skip
    text = text_of(client.get(page(admin)))
    assert "+2 ~1 −1 2 added, 1 changed, 1 removed in version 2" in text  # noqa: RUF001 - a minus
    assert "outputs only in version 4" in text
    assert "no changes in version 3" in text
    # A single statement fetches all documents, up to the limit.
    assert len([sql for sql in queries if '"document"' in sql]) == 2, "and one for what is in it"
    monkeypatch.setattr(state_page, "COMPARED", 1)
    assert [change is None for change in diffs()] == [True] * 6
    monkeypatch.setattr(state_page, "COMPARED", 20)
    monkeypatch.setattr(state_page, "COMPARED_BYTES", 10)
    assert [change is None for change in diffs()] == [True] * 6


def test_state_page_shows_the_contents(recorded: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    client = person("viewer")
    answer = client.get(page(recorded))

    document_ = json.loads(AFTER)
    text = text_of(answer)
    assert document_["terraform_version"] in text
    for name in document_["outputs"]:
        assert name in text
    assert HIDDEN in text
    assert not [password for password in PASSWORDS if password in answer.content]
    assert "Show sensitive values" not in text
    instances = sum(len(resource["instances"]) for resource in document_["resources"])
    assert f"Resources {instances}" in text
    # Viewing the page records no access to the document. The links for secrets do.
    assert not AuditEvent.objects.filter(actor_name="viewer-person").exists()
    assert "Show sensitive values" in text_of(person("administrator").get(page(recorded)))

    # A large document is read only on request.
    monkeypatch.setattr(state_page, "READ_BYTES", 10)
    assert "The document is large." in text_of(client.get(page(recorded)))
    assert f"Resources {instances}" in text_of(client.get(page(recorded), {"contents": ""}))


def test_a_document_that_cannot_be_shown_leaves_the_page(recorded: Backend) -> None:
    recorded.push(ENCRYPTED, "?force=true")
    text = text_of(person("viewer").get(page(recorded)))
    assert "Not shown OpenTofu encrypted the document" in text
    assert "3 current" in text


def test_page_shows_the_contents_of_a_version(recorded: Backend) -> None:
    address = page(recorded, "versions/2/contents/")
    for group in ("viewer", "administrator"):
        answer = person(group).get(address)
        assert "Sensitive values are hidden." in text_of(answer)
        assert not [password for password in PASSWORDS if password in answer.content]
    assert person("operator").post(address).status_code == 403
    assert person("administrator", enforce_csrf_checks=True).post(address).status_code == 403

    shown = person("administrator").post(address)
    assert "Sensitive values are shown." in text_of(shown)
    assert "no-store" in shown["Cache-Control"]
    assert [password for password in PASSWORDS if password in shown.content]
    event = AuditEvent.objects.order_by("-id")[0]
    assert event.details == {"version": 2, "part": "contents", "secrets": True}
    assert event.actor_name == "administrator-person"

    for number in (9, 2**40):
        gone = person("viewer").get(page(recorded, f"versions/{number}/contents/"), follow=True)
        assert "The state has no version with this number" in text_of(gone)


def test_contents_are_paginated(admin: Backend) -> None:
    names = [f"r{number:03}" for number in range(contents_page.ITEMS + 5)]
    outputs = {name: {"value": name, "type": "string"} for name in names}
    admin.push(document(1, resources=resources_of(*names), outputs=outputs))
    client = person("viewer")

    first = client.get(page(admin, "versions/1/contents/"))
    assert len(first.context["contents"].resources) == contents_page.ITEMS
    rest = client.get(page(admin, "versions/1/contents/"), {"start": contents_page.ITEMS})
    assert [r["address"] for r in rest.context["contents"].resources] == [
        f"test.{name}" for name in names[-5:]
    ]
    assert len(rest.context["contents"].outputs) == 5
    assert rest.context["contents"].next_start is None
    for odd in ("x", "-1", "9" * 5000):
        assert client.get(page(admin, "versions/1/contents/"), {"start": odd}).status_code == 200


def test_markup_in_a_document_is_text(admin: Backend) -> None:
    admin.push(document(1, outputs={"a": {"value": 1, "type": "number"}}))
    evil = {"value": "<script>alert(1)</script>", "type": "string"}
    admin.push(document(2, outputs={"a": evil, "<b>": evil}))

    for shown in (
        compared(admin, 1, 2),
        (page(admin),),
        (page(admin, "versions/2/contents/"),),
        (page(admin, "restore-version/"), {"number": 1}),
    ):
        content = person("operator").get(*shown).content
        assert b"<script>alert" not in content
        assert b"&lt;script&gt;alert(1)" in content


def test_incomparable_versions_are_reported(recorded: Backend) -> None:
    client = person("viewer")
    gone = client.get(*compared(recorded, 1, 9), follow=True)
    assert "The state has no version with this number" in text_of(gone)
    recorded.push(ENCRYPTED, "?force=true")
    encrypted = client.get(*compared(recorded, 1, 3), follow=True)
    assert "OpenTofu encrypted the document" in text_of(encrypted)
    for before, after in (("", ""), ("x", 1), (0, 1), (1, 2**40)):
        answer = client.get(*compared(recorded, before, after))
        assert answer.status_code == 200
        assert "From version" not in text_of(answer)


def test_damaged_document_is_reported(recorded: Backend) -> None:
    StateVersion.objects.filter(number=1).update(document=b"damaged")
    answer = person("administrator").get(page(recorded, "versions/1/document/"), follow=True)
    assert "The stored document is damaged" in text_of(answer)
    assert State.objects.count() == 1
