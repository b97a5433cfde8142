"""POST /api/v1/states/{id}:freeze and :unfreeze, and the changes that a freeze prevents."""

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apikeys import audit
from apikeys.models import AuditEvent
from states.models import State
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document, seen

REASON = "database upgrade, ask ada"
UNTIL = "2999-01-31T12:00:00.000000Z"


@pytest.fixture
def frozen(admin: Backend) -> Backend:
    """A state with two versions, frozen."""
    admin.push(document(1))
    admin.push(document(2))
    assert freeze(admin, expected_until=UNTIL).status_code == 200
    return admin


def freeze(state: Backend, **options: Any) -> Any:
    return state.call(":freeze", {"reason": REASON, **options})


def events(action: str) -> list[dict[str, Any]]:
    found = AuditEvent.objects.filter(action=action).order_by("id")
    return list(found.values_list("details", flat=True))


def test_the_answer_and_the_audit_log(admin: Backend) -> None:
    admin.push(document())

    response = freeze(admin, reason=f" {REASON} ", expected_until="2999-01-31T13:00:00+01:00")

    assert response.status_code == 200
    assert response.json() == admin.look().json()
    moment = admin.record.frozen_at
    assert moment is not None
    assert response.json()["state"]["frozen"] == {
        "frozen_at": seen(moment),
        "frozen_by": admin.client.token.created_by.username,
        "reason": REASON,
        "expected_until": UNTIL,
    }
    assert events("state.frozen") == [
        {"version": 1, "reason": REASON, "expected_until": "2999-01-31T12:00:00+00:00"}
    ]

    response = admin.call(":unfreeze", {"reason": "done"})

    assert response.status_code == 200
    assert response.json() == admin.look().json()
    assert "frozen" not in response.json()["state"]
    (event,) = events("state.unfrozen")
    assert (event["reason"], event["frozen"]["reason"]) == ("done", REASON)
    assert admin.push(document(2)).status_code == 200


def test_reads_go_on(frozen: Backend) -> None:
    assert frozen.get().content == document(2)
    assert frozen.look("/versions").status_code == 200
    assert frozen.look("/resources").status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.lock(uuid.uuid4()),
        lambda state: state.send("POST", json.dumps({"ID": str(uuid.uuid4())}), "/lock"),
        lambda state: state.push(document(3)),
        lambda state: state.push(document(2)),
        lambda state: state.push(document(3), "?force=true"),
        lambda state: state.push(document(3), f"?ID={uuid.uuid4()}"),
        lambda state: state.call("/versions/1:restore"),
        lambda state: state.call("/versions/1:restore", {"lock_id": str(uuid.uuid4())}),
        lambda state: state.delete(),
        lambda state: state.client.delete(state.root),
        lambda state: state.unlock(None),
        lambda state: state.call(":force-unlock", {"reason": "stuck"}),
    ],
)  # fmt: skip
def test_every_change_is_refused_as_terraform_shows_it(
    frozen: Backend, change: Callable[[Backend], Any]
) -> None:
    before = frozen.record, AuditEvent.objects.count()

    response = change(frozen)

    assert (response.status_code, error_reason(response)) == (423, "STATE_FROZEN")
    body = response.json()
    assert body["error"]["status"] == "FAILED_PRECONDITION"
    by = frozen.client.token.created_by.username
    info = f"{REASON} (expected until 2999-01-31 12:00 UTC)"
    since = f"{frozen.record.frozen_at:%Y-%m-%d %H:%M} UTC"
    assert body["error"]["message"].startswith(f"The state is {body['ID']}. Wait until")
    assert body["error"]["details"][0]["metadata"] == {"state_id": str(frozen.record.pk)}
    lock = {name: body[name] for name in ("ID", "Operation", "Who", "Info", "Version", "Path")}
    assert lock == {
        "ID": f"frozen by {by} since {since}: {info}",
        "Operation": "freeze",
        "Who": by,
        "Info": info,
        "Version": "",
        "Path": "",
    }
    assert dt.datetime.fromisoformat(body["Created"]) == frozen.record.frozen_at
    after = frozen.record
    assert (after.revision, after.frozen_at) == (before[0].revision, before[0].frozen_at)
    assert AuditEvent.objects.count() == before[1]


def test_repeated_unlock_succeeds_and_keeps_the_freeze(frozen: Backend) -> None:
    """A client whose UNLOCK was answered too late must not fail because of a later freeze."""
    assert frozen.unlock(uuid.uuid4()).status_code == 200
    assert frozen.record.frozen_at is not None


def test_the_holder_of_the_lock_finishes(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.push(document(1))
    admin.lock(lock_id)

    assert {"lock", "frozen"} <= freeze(admin).json()["state"].keys()

    assert admin.lock(lock_id).status_code == 200
    assert error_reason(admin.lock(uuid.uuid4())) == "STATE_LOCKED"
    assert admin.push(document(2), f"?ID={lock_id}").status_code == 200
    assert admin.unlock(lock_id).status_code == 200
    assert error_reason(admin.lock(uuid.uuid4())) == "STATE_FROZEN"
    assert error_reason(admin.push(document(3))) == "STATE_FROZEN"


@pytest.mark.parametrize("over_http", [True, False])
def test_a_force_unlock_does_not_unfreeze(
    admin: Backend, lock_id: uuid.UUID, over_http: bool
) -> None:
    admin.lock(lock_id)
    freeze(admin)

    released = admin.unlock(None) if over_http else admin.call(":force-unlock", {"reason": "x"})

    assert released.status_code == 200
    assert (admin.record.lock_id, admin.record.freeze_reason) == (None, REASON)
    assert error_reason(admin.push(document(), f"?ID={lock_id}")) == "STATE_FROZEN"


def test_an_empty_state_is_kept_by_its_freeze(admin: Backend, lock_id: uuid.UUID) -> None:
    admin.lock(lock_id)
    freeze(admin)

    admin.unlock(lock_id)

    assert admin.record.frozen_at is not None
    assert error_reason(admin.delete()) == "STATE_FROZEN"


def test_identical_freeze_is_a_no_op_and_a_new_freeze_replaces_it(frozen: Backend) -> None:
    before = frozen.record
    assert freeze(frozen, expected_until=UNTIL).status_code == 200
    assert (frozen.record.revision, len(events("state.frozen"))) == (before.revision, 1)

    later = freeze(frozen, reason="longer", expected_until=None).json()["state"]["frozen"]

    assert (later["reason"], later["expected_until"]) == ("longer", None)
    assert later["frozen_at"] > seen(before.frozen_at)  # type: ignore[arg-type]
    assert len(events("state.frozen")) == 2


def test_unfreezing_an_unfrozen_state_is_a_no_op(admin: Backend) -> None:
    admin.push(document())

    assert admin.call(":unfreeze").status_code == 200
    assert not events("state.unfrozen")


@pytest.mark.parametrize("change", [{"name": "new"}, {"slug": "new"}])
@pytest.mark.parametrize("kind", ["component", "environment"])
def test_its_entries_are_not_renamed(frozen: Backend, kind: str, change: dict[str, str]) -> None:
    path = f"/api/v1/{kind}s/{getattr(frozen, f'{kind}_id')}"

    refused = frozen.client.patch(path, json.dumps(change), "application/json")

    assert (refused.status_code, error_reason(refused)) == (423, "STATE_FROZEN")
    assert REASON in refused.json()["ID"]
    frozen.call(":unfreeze")
    renamed = frozen.client.patch(path, json.dumps(change), "application/json")
    assert renamed.status_code == 200


def test_its_application_is_not_renamed_nor_left(frozen: Backend) -> None:
    made = frozen.client.post("/api/v1/applications", '{"name": "shop"}', "application/json")
    application_id = made.json()["application"]["id"]
    component = f"/api/v1/components/{frozen.component_id}"
    move = json.dumps({"application_id": application_id})
    assert error_reason(frozen.client.patch(component, move, "application/json")) == "STATE_FROZEN"
    frozen.call(":unfreeze")
    assert frozen.client.patch(component, move, "application/json").status_code == 200
    freeze(frozen)

    path = f"/api/v1/applications/{application_id}"
    renamed = frozen.client.patch(path, '{"name": "store"}', "application/json")

    assert error_reason(renamed) == "STATE_FROZEN"


def test_other_settings_of_its_environment_change(frozen: Backend) -> None:
    path = f"/api/v1/environments/{frozen.environment_id}"
    changed = frozen.client.patch(path, '{"require_lock": true}', "application/json")
    assert changed.status_code == 200


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ({}, "reason", "REQUIRED"),
        ({"reason": "  "}, "reason", "BLANK"),
        ({"reason": None}, "reason", "NULL"),
        ({"reason": 5}, "reason", "INVALID"),
        ({"reason": "x" * 1001}, "reason", "MAX_LENGTH"),
        ({"reason": "x", "expected_until": "tomorrow"}, "expected_until", "INVALID"),
        ({"reason": "x", "expected_until": "2020-01-01T00:00:00Z"}, "expected_until", "PAST"),
        ({"reason": "x", "until": UNTIL}, "until", "UNKNOWN_FIELD"),
    ],
)
def test_invalid_bodies_are_rejected(admin: Backend, body: Any, field: str, reason: str) -> None:
    admin.push(document())

    response = admin.call(":freeze", body)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    (violation,) = response.json()["error"]["details"][1]["field_violations"]
    assert (violation["field"], violation["reason"]) == (field, reason)
    assert admin.record.frozen_at is None


@pytest.mark.parametrize("method", [":freeze", ":unfreeze"])
def test_needs_its_scope_and_the_binding(
    backend: Backend, client_with: ClientWith, method: str
) -> None:
    backend.push(document())
    elsewhere = client_with("state:admin", bound_environment_ids=[str(uuid.uuid4())])

    refused = backend.call(method, {"reason": "x"})
    hidden = backend.as_client(elsewhere).call(method, {"reason": "x"})

    assert (refused.status_code, error_reason(refused)) == (403, "SCOPE_INSUFFICIENT")
    assert (hidden.status_code, error_reason(hidden)) == (404, "STATE_NOT_FOUND")
    assert backend.record.frozen_at is None


def test_a_deleted_state_is_not_frozen(admin: Backend) -> None:
    admin.push(document())
    root = admin.root
    admin.delete()

    refused = admin.client.post(f"{root}:freeze", {"reason": "x"}, "application/json")

    assert error_reason(refused) == "STATE_NOT_FOUND"


def test_filter_selects_frozen_states(frozen: Backend) -> None:
    other = Backend(frozen.client)
    other.push(document())

    def listed(value: str) -> list[str]:
        answer = frozen.client.get("/api/v1/states", {"filter": f"field['frozen'] = {value}"})
        assert answer.status_code == 200, answer.content
        return [state["id"] for state in answer.json()["states"]]

    assert listed("true") == [str(frozen.record.pk)]
    assert listed("false") == [str(other.record.pk)]


def test_rejection_needs_no_more_queries_than_a_lock(
    frozen: Backend, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        frozen.lock(uuid.uuid4())
    with django_assert_num_queries(1):
        frozen.push(document(3))
    frozen.call(":unfreeze")
    with django_assert_num_queries(2 if connection.vendor == "postgresql" else 5):
        frozen.lock(uuid.uuid4())


def test_a_freeze_between_the_read_and_the_write(
    admin: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements that write carry the condition, so that a freeze cannot be overlooked."""
    admin.push(document(1))
    real = audit.AuditedUpdate.run

    for change in (
        lambda: admin.push(document(2)),
        lambda: admin.lock(uuid.uuid4()),
        lambda: admin.call("/versions/1:restore"),
    ):
        pending = [
            lambda: State.objects.all().change(frozen_at=timezone.now(), freeze_reason="just now")
        ]

        def run(self: Any, *args: Any, pending: Any = pending, **given: Any) -> bool:
            if pending:
                pending.pop()()
            return real(self, *args, **given)

        monkeypatch.setattr(audit.AuditedUpdate, "run", run)
        assert error_reason(change()) == "STATE_FROZEN"
        admin.call(":unfreeze")


def test_a_deleted_state_can_be_unfrozen(frozen: Backend) -> None:
    """A previous release beside this one ignores freezes, so it can delete a frozen state."""
    State.objects.update(deleted_at=timezone.now())

    done = frozen.call(":unfreeze")

    assert done.status_code == 200
    assert State.objects.get().frozen_at is None


def test_clients_get_no_control_characters(admin: Backend) -> None:
    admin.push(document())
    freeze(admin, reason="a\x1b[31mb\u202ec\nd")

    refused = admin.push(document(2))

    assert refused.status_code == 423
    assert refused.json()["Info"] == "a [31mb c d"
