"""GET /api/v1/states/{id}/versions/{number}/diff."""

from typing import Any

import pytest

from apikeys.models import AuditEvent
from states.models import StateVersion
from states.models.imported_versions import ImportedVersion
from tests.conftest import error_reason
from tests.states.conftest import Backend, document
from tests.states.samples import AFTER, BEFORE, ENCRYPTED, PASSWORDS, instance, resource, state


@pytest.fixture
def three(backend: Backend) -> Backend:
    for serial, value in ((1, "a"), (2, "b"), (3, "c")):
        thing = resource("x", instance({"v": value}))
        backend.push(state(thing, outputs={"o": {"value": value}}, serial=serial))
    return backend


def changed(answer: Any) -> list[Any]:
    """Return the old and new value of the only attribute of the only resource."""
    (found,) = answer.json()["diff"]["resources"]
    return [found["attributes"][0][side] for side in ("before", "after")]


def test_default_comparison_is_with_the_previous_version(three: Backend) -> None:
    response = three.look("/versions/3/diff")

    sides = [three.look(f"/versions/{n}").json()["version"] for n in (2, 3)]
    change = {"action": "CHANGED", "before": "b", "after": "c", "sensitive": False}
    assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
    assert response.json() == {
        "diff": {
            "before": {**sides[0], "terraform_version": "1.11.4"},
            "after": {**sides[1], "terraform_version": "1.11.4"},
            "summary": {
                "outputs": {"added": 0, "changed": 1, "removed": 0},
                "resources": {"added": 0, "changed": 1, "removed": 0},
                "check_results": {"added": 0, "changed": 0, "removed": 0},
            },
            "metadata": [],
            "check_results": [],
            "outputs": [
                {
                    "name": "o",
                    "action": "CHANGED",
                    "attributes": [{"path": "value", **change}],
                    "metadata": [],
                }
            ],
            "resources": [
                {
                    "address": "thing.x",
                    "deposed": None,
                    "module": None,
                    "mode": "managed",
                    "type": "thing",
                    "name": "x",
                    "index_key": None,
                    "action": "CHANGED",
                    "attributes": [{"path": "v", **change}],
                    "metadata": [],
                }
            ],
        },
        "next_page_token": "",
    }


def test_an_imported_version_has_its_source(three: Backend) -> None:
    latest = StateVersion.objects.get(number=3)
    ImportedVersion.objects.create(version=latest, source="gitlab", key="k", digest="d")

    diff = three.look("/versions/3/diff").json()["diff"]

    assert diff["after"]["imported"] == {"source": "gitlab", "created_at": None, "created_by": ""}
    assert "imported" not in diff["before"]


def test_version_is_compared_with_another_version(three: Backend) -> None:
    assert changed(three.look("/versions/3/diff?against=1")) == ["a", "c"]
    assert changed(three.look("/versions/1/diff?against=3")) == ["c", "a"]


def test_first_version_is_compared_with_an_empty_state(three: Backend) -> None:
    diff = three.look("/versions/1/diff").json()["diff"]

    assert diff["before"] is None
    assert diff["summary"]["resources"] == {"added": 1, "changed": 0, "removed": 0}


def test_a_gap_in_the_history_is_skipped(three: Backend) -> None:
    StateVersion.objects.filter(number=2).delete()

    assert changed(three.look("/versions/3/diff")) == ["a", "c"]


def test_pages_contain_every_item_once(backend: Backend) -> None:
    backend.push(BEFORE)
    backend.push(AFTER)
    whole = backend.look("/versions/2/diff").json()["diff"]

    found: list[Any] = []
    token = ""
    while token or not found:
        page = backend.look(f"/versions/2/diff?page_size=7&page_token={token}").json()
        assert page["diff"]["summary"] == whole["summary"]
        found += page["diff"]["outputs"] + page["diff"]["resources"]
        token = page["next_page_token"]

    assert found == whole["outputs"] + whole["resources"]


def test_pages_of_the_first_version_list_all_additions(three: Backend) -> None:
    first = three.look("/versions/1/diff?page_size=1").json()
    second = three.look(f"/versions/1/diff?page_token={first['next_page_token']}").json()

    assert [len(first["diff"][k]) for k in ("outputs", "resources")] == [1, 0]
    assert [len(second["diff"][k]) for k in ("outputs", "resources")] == [0, 1]


def test_secrets_take_their_scope(backend: Backend, seeing: Backend) -> None:
    backend.push(BEFORE)
    backend.push(AFTER)

    hidden, shown = (c.look("/versions/2/diff").content for c in (backend, seeing))

    assert not any(password in hidden for password in PASSWORDS)
    assert all(password in shown for password in PASSWORDS)


def test_both_reads_are_audited(three: Backend) -> None:
    three.look("/versions/3/diff?against=1")

    events = AuditEvent.objects.filter(action="state.read").order_by("id")
    assert [e.details for e in events] == [
        {"version": version, "part": "diff", "secrets": False} for version in (1, 3)
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [(ENCRYPTED, "STATE_ENCRYPTED"), (b'{"version":5,"serial":9}', "STATE_FORMAT_UNSUPPORTED")],
)
def test_unreadable_documents_are_reported(backend: Backend, body: bytes, reason: str) -> None:
    backend.push(body)

    response = backend.look("/versions/1/diff")

    assert (response.status_code, error_reason(response)) == (400, reason)
    assert response.json()["error"]["status"] == "FAILED_PRECONDITION"


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("against=x", 400, "INVALID_FIELDS"),
        ("against=-1", 400, "INVALID_FIELDS"),
        ("against=9", 404, "VERSION_NOT_FOUND"),
        ("against=0", 404, "VERSION_NOT_FOUND"),
        ("agianst=1", 400, "INVALID_FIELDS"),
        ("page_size=101", 400, "INVALID_FIELDS"),
        ("page_token=x", 400, "INVALID_PAGE_TOKEN"),
    ],
)
def test_unknown_parameters_are_rejected(
    backend: Backend, query: str, status: int, reason: str
) -> None:
    backend.push(document())

    response = backend.look(f"/versions/1/diff?{query}")

    assert (response.status_code, error_reason(response)) == (status, reason)


def test_page_token_of_another_comparison_is_rejected(three: Backend) -> None:
    token = three.look("/versions/3/diff?page_size=1").json()["next_page_token"]

    response = three.look(f"/versions/3/diff?against=1&page_token={token}")

    assert (response.status_code, error_reason(response)) == (400, "INVALID_PAGE_TOKEN")
