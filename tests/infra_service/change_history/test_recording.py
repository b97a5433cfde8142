"""Changes between the versions of a state, as the index stores them."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from typing import Any

import pytest
from django.core.management import call_command

from apikeys.actors import Actor
from infra_service.change_history import recording
from infra_service.change_history.api.serializers import ChangeSerializer
from infra_service.change_history.models import Change, RecordedState
from infra_service.lib.api.row_json import derive
from states.document import difference, format4
from states.keeping import pruning, reading
from states.keeping.loading import Load, loader
from states.models import State, StateVersion
from states.resources import indexing
from tests.conftest import ApiClient, ClientWith
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import instance, resource, state
from tests.states.test_documents import new_key

LIST = "/api/v1/changes"


def changes(**of: Any) -> list[tuple[str, str, list[str]]]:
    """Return the action, the address and the attributes of changes, the newest first."""
    rows = Change.objects.filter(**of).order_by("-id")
    return list(rows.values_list("action", "address", "attributes"))


def push(backend: Backend, serial: int, *resources: dict[str, Any]) -> None:
    body = {**json.loads(state(*resources)), "serial": serial}
    assert backend.push(json.dumps(body).encode()).status_code == 200


def thing(name: str, id_: str = "", **attributes: Any) -> dict[str, Any]:
    status = attributes.pop("status", None)
    written = instance({"id": id_ or name, **attributes}, **({"status": status} if status else {}))
    return resource(name, written)


def test_each_action_is_recorded(backend: Backend) -> None:
    push(
        backend,
        1,
        thing("changed", size=1, tags={"a": "b"}),
        thing("removed"),
        thing("replaced", "i-1", size=1),
        thing("moved", "i-2", size=1),
        thing("tainted"),
        thing("same"),
    )
    push(
        backend,
        2,
        thing("added"),
        thing("changed", size=2, tags={"secret-key": "b"}),
        thing("elsewhere", "i-2", size=2),
        thing("replaced", "i-3", size=1),
        thing("same"),
        thing("tainted", status="tainted"),
    )
    index()

    assert changes(version_number=2) == [
        ("ADDED", "thing.added", []),
        ("CHANGED", "thing.changed", ["size", "tags"]),
        ("MOVED", "thing.elsewhere", ["size"]),
        ("REMOVED", "thing.removed", []),
        ("REPLACED", "thing.replaced", ["id"]),
        ("TAINTED", "thing.tainted", []),
    ]
    moved = Change.objects.get(action="MOVED")
    assert moved.previous_address == "thing.moved"
    assert moved.provider == "example.org/x/y"
    assert {action for action, _, _ in changes(version_number=1)} == {"ADDED"}
    assert "secret-key" not in json.dumps(changes())


def test_each_version_between_two_passes_is_recorded(backend: Backend) -> None:
    for serial in (1, 2, 3):
        push(backend, serial, thing("a", size=serial))
    index()
    push(backend, 4, thing("a", size=3), thing("b"))
    index()
    index()

    assert [
        version for (version,) in Change.objects.order_by("-id").values_list("version_number")
    ] == [4, 3, 2, 1]
    assert changes(version_number=4) == [("ADDED", "thing.b", [])]


def test_each_version_is_loaded_and_parsed_once(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, real: Any) -> Any:
        def called(*given: Any) -> Any:
            calls[name] += 1
            return real(*given)

        return called

    monkeypatch.setattr(reading, "load", counting("load", reading.load))
    monkeypatch.setattr(format4, "parse", counting("parse", format4.parse))
    for name in ("_outputs", "_metadata"):
        monkeypatch.setattr(difference, name, counting(name, getattr(difference, name)))
    for serial in (1, 2, 3):
        push(backend, serial, thing("a", size=serial))
    index()
    assert calls == {"load": 3, "parse": 3}

    push(backend, 4, thing("a", size=4))
    calls.clear()
    index()
    assert calls == {"load": 2, "parse": 2}  # also the version before

    calls.clear()
    list(recording.rebuild())
    assert calls == {"load": 4, "parse": 4}
    indexing.mark_for_indexing(everything=True)
    calls.clear()
    index()
    assert calls == {"load": 1, "parse": 1}  # without a new version


def test_data_sources_and_deposed_objects_are_left_out(backend: Backend) -> None:
    push(backend, 1, resource("d", instance({"id": "1"}), mode="data"))
    push(backend, 2, resource("r", instance({"id": "1"}, deposed="0a1b2c3d")))
    index()

    assert changes() == []


def test_object_that_exists_twice_is_not_moved(backend: Backend) -> None:
    push(backend, 1, thing("a", "same"), thing("b", "same"))
    push(backend, 2, thing("c", "same"))
    index()

    assert {action for action, _, _ in changes(version_number=2)} == {"ADDED", "REMOVED"}


def test_an_object_of_another_region_is_not_moved(backend: Backend) -> None:
    push(backend, 1, thing("old", "app", arn="arn:aws:dynamodb:eu-west-1:1:table/app"))
    push(backend, 2, thing("new", "app", arn="arn:aws:dynamodb:us-east-1:1:table/app"))
    index()

    assert changes(version_number=2) == [
        ("ADDED", "thing.new", []), ("REMOVED", "thing.old", []),
    ]  # fmt: skip


def test_unreadable_version_is_recorded_with_its_reason(backend: Backend) -> None:
    push(backend, 1, thing("a"))
    assert backend.push(b'{"version": 3, "serial": 2}').status_code == 200
    push(backend, 3, thing("a"))
    index()

    found = Change.objects.filter(version_number__gt=1).order_by("id")
    assert [(one.action, one.problem) for one in found] == [
        ("UNKNOWN", "STATE_FORMAT_UNSUPPORTED"),
        ("UNKNOWN", "STATE_FORMAT_UNSUPPORTED"),
    ]


def test_name_that_no_index_can_store_is_a_problem(backend: Backend) -> None:
    push(backend, 1, thing("x" * 2_001))
    index()

    assert Change.objects.get().problem == "NAMES_TOO_LONG"


def test_failure_of_the_comparison_does_not_stop_the_index(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_documents: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("states.document.contents.changed_resources", fail)
    push(backend, 1, thing("a"))
    index()

    assert Change.objects.get().problem == "UNEXPECTED"
    assert not State.objects.due().exists()


def test_changes_are_deleted_with_their_version(backend: Backend, settings: Any) -> None:
    settings.STATE_VERSIONS_KEPT, settings.STATE_VERSIONS_DAYS = 1, 0
    push(backend, 1, thing("a"))
    push(backend, 2, thing("b"))
    index()
    list(pruning.prune(actor=Actor.of_command("prune_states")))

    assert {number for (number,) in Change.objects.values_list("version_number")} == {2}


def test_rebuild_keeps_changes_that_cannot_be_determined_again(
    backend: Backend, settings: Any
) -> None:
    """After the removal of the version before, or without the key of a document."""
    (key,) = settings.STATE_ENCRYPTION_KEYS
    settings.STATE_VERSIONS_KEPT, settings.STATE_VERSIONS_DAYS = 2, 0
    for serial in (1, 2, 3):
        push(backend, serial, thing("a", size=serial))
    index()
    list(pruning.prune(actor=Actor.of_command("prune_states")))
    before = changes()

    list(recording.rebuild())
    settings.STATE_ENCRYPTION_KEYS = [new_key()]
    list(recording.rebuild())
    assert changes() == before

    settings.STATE_ENCRYPTION_KEYS = [key]
    RecordedState.objects.all().delete()
    list(recording.rebuild())
    found = Change.objects.order_by("version_number")
    assert [(one.action, one.problem) for one in found] == [
        ("UNKNOWN", "PREDECESSOR_REMOVED"),
        ("CHANGED", ""),
    ]


def test_rebuild_continues_after_a_state_that_retention_removes(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(backend, 1, thing("a"))
    push(backend, 2, thing("b"))
    index()
    find = recording._changes_of

    def purged(*args: Any) -> Any:
        if State.objects.update(deleted_at="2020-01-01T00:00:00Z"):
            list(pruning.prune(actor=Actor.of_command("prune_states")))
        return find(*args)

    monkeypatch.setattr(recording, "_changes_of", purged)

    assert len(list(recording.rebuild())) == 1
    assert not Change.objects.exists()


def test_rebuild_stores_the_same_changes(backend: Backend) -> None:
    push(backend, 1, thing("a"), thing("b"))
    push(backend, 2, thing("a", size=1))
    index()
    before = changes()
    Change.objects.all().delete()
    RecordedState.objects.all().delete()

    list(recording.rebuild())
    list(recording.rebuild())

    assert changes() == before


def test_version_that_another_process_stored_is_left_alone(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(backend, 1, thing("a"))
    index()
    push(backend, 2, thing("a", size=1))
    record, others = recording._record, []

    def raced(state: State, version: StateVersion, load: Load, *, moves: bool) -> bool:
        if not others:
            others.append(version.number)
            recording.receive(state=state, load=load)
        return record(state, version, load, moves=moves)

    monkeypatch.setattr(recording, "_record", raced)
    recording.receive(state=backend.record, load=loader())

    assert others == [2]
    assert changes(version_number=2) == [("CHANGED", "thing.a", ["size"])]


def test_list_has_all_fields(backend: Backend, reader: ApiClient) -> None:
    push(backend, 1, thing("a"))
    index()

    answer = reader.get(LIST)

    change, version = Change.objects.get(), StateVersion.objects.get()
    assert answer.json() == {
        "changes": [
            {
                "id": str(change.pk),
                "occurred_at": answer.json()["changes"][0]["occurred_at"],
                "kind": "RESOURCE",
                "action": "ADDED",
                "address": "thing.a",
                "previous_address": "",
                "type": "thing",
                "provider": "example.org/x/y",
                "attributes": [],
                "before": "",
                "after": "",
                "problem": "",
                "state_id": str(backend.record.pk),
                "version_number": 1,
                "component_id": str(backend.component_id),
                "component_slug": None,
                "environment_id": str(backend.environment_id),
                "environment_slug": None,
                "cluster_id": None,
                "cluster_name": None,
                "workload_id": None,
                "created_by": version.created_by,
                "token_id": version.token_id,
                "commit": None,
                "run_url": None,
            }
        ],
        "next_page_token": "",
    }
    assert backend.look("/changes").json() == answer.json()


def test_rows_of_the_list_are_rendered_by_postgresql(backend: Backend, reader: ApiClient) -> None:
    push(backend, 1, thing("a", size=1, tags={"a": "b"}))
    push(backend, 2, thing("a", size=2, tags={}))
    index()

    assert derive(ChangeSerializer) is not None
    shown, _ = reader.items(LIST, "changes")
    assert shown["attributes"] == ["size", "tags"]


def test_list_shows_only_changes_within_the_binding(
    backend: Backend, client_with: ClientWith
) -> None:
    other = Backend(backend.client)
    push(backend, 1, thing("a"))
    push(other, 1, thing("b"))
    index()
    bound = client_with("state:read", bound_component_ids=[str(other.component_id)])

    assert [one["address"] for one in bound.items(LIST, "changes")] == ["thing.b"]
    assert bound.get(f"/api/v1/states/{backend.record.pk}/changes").status_code == 404
    assert client_with("state:outputs").get(LIST).status_code == 403


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("field['action'] = 'REMOVED'", ["thing.b"]),
        ("field['address'] = 'thing.a'", ["thing.a", "thing.a"]),
        ("field['type'] = 'other'", []),
        ("field['version_number'] = 2", ["thing.a", "thing.b"]),
        (
            "field['occurred_at'] > '2001-01-01T00:00:00Z'",
            ["thing.a", "thing.a", "thing.b", "thing.b"],
        ),
        ("field['occurred_at'] < '2001-01-01T00:00:00Z'", []),
        ("field['occurred_at'] <= '2001-01-01T00:00:00Z'", []),
        (
            "field['occurred_at'] >= '0001-01-01T00:00:00Z' AND field['version_number'] = 1",
            ["thing.a", "thing.b"],
        ),
        (
            "field['occurred_at'] < '9999-12-31T23:59:59Z' AND field['version_number'] = 1",
            ["thing.a", "thing.b"],
        ),
        ("field['created_by'] = 'nobody'", []),
    ],
)
def test_filters_select_changes(
    backend: Backend, reader: ApiClient, text: str, expected: list[str]
) -> None:
    push(backend, 1, thing("a"), thing("b"))
    push(backend, 2, thing("a", size=2))
    index()

    for path in (LIST, f"/api/v1/states/{backend.record.pk}/changes"):
        found = reader.items(path, "changes", filter=text)
        assert sorted(one["address"] for one in found) == expected


def test_times_are_compared_exactly(backend: Backend, reader: ApiClient) -> None:
    push(backend, 1, thing("a"))
    index()
    moment = Change.objects.get().occurred_at
    whole = moment - dt.timedelta(microseconds=moment.microsecond % 1000)
    tick, step = dt.timedelta(microseconds=1), dt.timedelta(milliseconds=1)

    for at in (whole, whole + step, moment, moment + tick, moment - tick, whole + tick):
        for operator, expected in (
            (">=", moment >= at), (">", moment > at), ("<", moment < at), ("<=", moment <= at),
            ("=", moment == at),
        ):  # fmt: skip
            for negation in (False, True):
                text = f"field['occurred_at'] {operator} '{at.isoformat()}'"
                found = reader.items(LIST, "changes", filter=f"NOT ({text})" if negation else text)
                assert bool(found) == (expected != negation), (text, negation, moment)


def test_command_rebuilds_changes_from_before_an_upgrade(
    backend: Backend, capsys: pytest.CaptureFixture[str]
) -> None:
    push(backend, 1, thing("a"))
    index()
    Change.objects.all().delete()
    RecordedState.objects.all().delete()

    call_command("rebuild_changes", "--json")

    assert json.loads(capsys.readouterr().out) == {"rebuilt": 1}
    assert changes() == [("ADDED", "thing.a", [])]


def test_version_that_retention_removes_meanwhile_leaves_nothing(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(backend, 1, thing("a"))
    push(backend, 2, thing("b"))
    compared = recording._changes_of

    def removed(state: State, version: StateVersion, load: Load) -> Any:
        found = compared(state, version, load)
        StateVersion.objects.filter(number=1).delete()
        return found

    monkeypatch.setattr(recording, "_changes_of", removed)
    recording.receive(state=backend.record, load=loader())

    assert not changes(version_number=1)
    assert changes(version_number=2)
