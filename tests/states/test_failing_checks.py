"""Failing ``check`` blocks of states: the column, the filter and the event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apikeys.models import AuditEvent
from states.document.check_results import MOST_FAILING, MOST_OF_ADDRESS
from states.metrics import CheckCollector
from states.models import State
from states.resources import indexing
from tests.conftest import ApiClient
from tests.states.conftest import Backend, document
from tests.states.indexed import index
from tests.states.samples import ENCRYPTED
from tests.support import figures
from tests.support.people import person, text_of


def results(**statuses: str) -> list[dict[str, Any]]:
    return [
        {"object_kind": "check", "config_addr": f"check.{name}", "status": status, "objects": None}
        for name, status in statuses.items()
    ]


def push(backend: Backend, serial: int, check_results: Any = None) -> None:
    body = document(serial, check_results=check_results)
    assert backend.push(body).status_code == 200


def events(backend: Backend) -> list[tuple[int, list[str]]]:
    found = AuditEvent.objects.filter(
        action="state.check_failed", resource_id=str(backend.record.pk)
    )
    return [(one.details["version"], one.details["checks"]) for one in found.order_by("id")]


def failing(backend: Backend) -> list[str] | None:
    found: list[str] | None = backend.look().json()["state"]["failing_checks"]
    return found


def test_failing_checks_are_shown_and_filtered(backend: Backend, reader: ApiClient) -> None:
    push(backend, 1, results(a="pass", b="fail", c="unknown", d="error"))
    fine = Backend(backend.client)
    push(fine, 1, results(a="pass"))
    assert failing(backend) is None
    index()
    assert (failing(backend), failing(fine)) == (["check.b", "check.d"], None)
    for value, own in (("true", backend), ("false", fine)):
        listed = reader.items(
            "/api/v1/states", "states", filter=f"field['failing_checks'] = {value}"
        )
        assert [one["id"] for one in listed] == [str(own.record.pk)]
        assert listed[0]["failing_checks"] == failing(own)


def test_only_check_blocks_count(backend: Backend) -> None:
    others = [
        {"object_kind": kind, "config_addr": "x.y", "status": "fail", "objects": None}
        for kind in ("resource", "output", "var", None)
    ]
    push(backend, 1, others)
    index()
    assert failing(backend) is None
    assert events(backend) == []


def test_an_event_is_recorded_when_checks_begin_to_fail(backend: Backend) -> None:
    for serial, (checks, expected) in enumerate(
        [
            (results(a="pass", b="pass"), []),
            (results(a="fail", b="pass"), ["check.a"]),
            (results(a="fail", b="pass"), []),
            (results(a="error", b="fail"), ["check.b"]),
            (results(a="pass", b="pass"), []),
            (results(a="fail", b="fail"), ["check.a", "check.b"]),
            (None, []),
        ],
        start=1,
    ):
        before = len(events(backend)) if serial > 1 else 0
        push(backend, serial, checks)
        assert len(events(backend)) == before  # the push itself records no event
        index()
        new = [(serial, expected)] if expected else []
        assert events(backend)[before:] == new, serial


def test_the_first_version_records_an_event(backend: Backend) -> None:
    push(backend, 1, results(a="fail"))
    index()
    assert events(backend) == [(1, ["check.a"])]


def test_a_version_that_is_not_indexed_is_not_compared(backend: Backend) -> None:
    push(backend, 1, results(a="pass"))
    index()
    push(backend, 2, results(a="fail"))
    push(backend, 3, results(a="fail"))
    index()
    assert events(backend) == [(3, ["check.a"])]


def test_indexing_again_records_no_event(admin: Backend) -> None:
    push(admin, 1, results(a="fail"))
    index()
    pk = admin.record.pk
    indexing.mark_for_indexing(everything=True)
    index()
    admin.client.delete(f"/api/v1/states/{pk}")
    admin.client.post(f"/api/v1/states/{pk}:undelete", "{}", "application/json")
    index()
    assert events(admin) == [(1, ["check.a"])]
    # Indexed by an earlier release, which did not read checks.
    State.objects.update(engine=None, failing_checks=None)
    indexing.mark_for_indexing(everything=True)
    push(admin, 2, results(a="fail"))
    index()
    assert events(admin) == [(1, ["check.a"])]
    assert failing(admin) == ["check.a"]


@pytest.mark.parametrize(
    "odd",
    ["text", 7, {"a": 1}, [7], [{"object_kind": 7}], [{"config_addr": "x" * 20_000}], [[[]]]],
)
def test_odd_results_do_not_prevent_indexing(backend: Backend, odd: Any) -> None:
    push(backend, 1, odd)
    index()
    assert (backend.record.index_problem, failing(backend)) == ("", None)


def test_names_are_bounded_and_printable(backend: Backend) -> None:
    many = {f"{n:03}\u202e\0{'x' * 300}": "fail" for n in range(200)}
    push(backend, 1, results(**many))
    index()
    found = failing(backend)
    assert found is not None
    assert len(found) == MOST_FAILING
    assert all(one.isprintable() and len(one) <= MOST_OF_ADDRESS for one in found)
    assert events(backend) == [(1, found)]


def test_an_unreadable_version_has_unknown_checks(backend: Backend) -> None:
    push(backend, 1, results(a="fail"))
    index()
    body = json.dumps({**json.loads(ENCRYPTED), "serial": 2, "lineage": backend.record.lineage})
    backend.push(body.encode())
    index()
    assert failing(backend) is None


def test_the_metrics_and_the_admin_show_them(backend: Backend) -> None:
    push(backend, 1, results(a="fail"))
    other = Backend(backend.client)
    push(other, 1, results(a="pass"))
    index()
    found = figures.of(CheckCollector())
    assert figures.value(found, "infra_state_failing_checks") == 1
    assert figures.value(found, "infra_state_client_encrypted") == 0

    viewer = person("viewer")
    text = text_of(viewer.get("/admin/states/state/?is=failing"))
    assert "1 failing" in text
    assert str(backend.component_id) in text
    assert str(other.component_id) not in text
    assert "check.a" in text_of(viewer.get(f"/admin/states/state/{backend.record.pk}/change/"))
