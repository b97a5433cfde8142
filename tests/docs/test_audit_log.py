"""docs/reference/audit-log.md: every action, with all its details."""

import re
import uuid
from typing import Any

from apikeys.api.serializers import AuditEventSerializer
from apikeys.models import AuditEvent
from infra_service.webhooks.event_types import AUDIT
from infra_service.webhooks.scheduled_events import FINDERS
from states.models.catalogue_entry import CatalogueEntry
from tests.conftest import ApiClient, ClientWith
from tests.docs.test_references import code, reference
from tests.docs.walk import ROOT
from tests.e2e.backend import document, lock_info

PAGE = reference("audit-log")
ROWS: dict[str, str] = {
    action: details
    for actions, details in re.findall(r"^\| (`\w+\.\w+`.*?) \| (.*?) ?\|$", PAGE, re.MULTILINE)
    for action in re.findall(r"`(\w+\.\w+)`", actions)
}


def test_documented_actions_match() -> None:
    resources = (
        "api_key|access_token|assertion|issuer|trust_policy|state|workspace|cluster|webhook|audit"
        "|mcp"
    )
    recorded = set(re.findall(rf'"((?:{resources})\.[a-z_]+)"', code()))
    for entry in CatalogueEntry.__subclasses__():
        recorded |= {f"{entry._meta.model_name}.{verb}" for verb in ("create", "update", "delete")}
    # The admin's events: tests/apikeys/admin/test_people.py.
    recorded |= {f"{user}.{verb}" for user in ("user", "group") for verb in ("create", "change")}
    recorded |= {"group.delete", *re.findall(r'"(user\.[a-z_]+)"', code())} - {"user.pk"}

    # Events of webhooks alone.
    assert set(ROWS) == recorded - FINDERS.keys() - {AUDIT}


def test_documented_fields_match() -> None:
    fields = re.findall(r"^\| `(\w+)` \|", PAGE.split("| action |")[0], re.MULTILINE)

    assert fields == list(AuditEventSerializer().fields)


def work_with_a_state(client: ApiClient) -> None:
    path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
    lock = lock_info(str(uuid.uuid4()))
    answers = [
        client.generic("POST", path, document(1), "application/json"),
        client.generic("POST", path, document(2), "application/json"),
        client.get(path),
        client.send("LOCK", path, lock),
        client.send("UNLOCK", path, lock),
        client.send("LOCK", path, lock),
    ]
    (state,) = client.items("/api/v1/states", "states")
    record = f"/api/v1/states/{state['id']}"
    answers += [
        client.send("POST", f"{record}:force-unlock", {"reason": "gone"}),
        client.send("POST", f"{record}:freeze", {"reason": "upgrade"}),
        client.send("POST", f"{record}:unfreeze", {"reason": "done"}),
        client.get(f"{record}/versions/2/diff"),
        client.get(f"{record}/outputs"),
        client.send("POST", f"{record}/versions/1:restore", {"reason": "wrong"}),
        client.delete(record),
        client.send("POST", f"{record}:undelete", {}),
    ]
    assert {answer.status_code for answer in answers} == {200, 204}


def work_with_entries(client: ApiClient) -> None:
    for kind in ("application", "component", "environment", "cluster"):
        path = f"/api/v1/{kind}s"
        made = client.send("POST", path, {kind: {"name": "one"}})
        path += f"/{made.json()[kind]['id']}"
        answers = [made, client.send("PATCH", path, {kind: {"name": "other"}})]
        if kind == "cluster":
            answers.append(client.delete(path))
        assert {answer.status_code for answer in answers} <= {200, 201, 204}


def test_documented_details_match(client_with: ClientWith) -> None:
    """The recorded details are documented by key; of a change, the fields are the keys."""
    client = client_with(
        "state:read", "state:write", "state:admin", "cluster:write", "state:secrets"
    )
    work_with_a_state(client)
    work_with_entries(client)

    events: list[Any] = list(AuditEvent.objects.exclude(action__startswith="a").all())
    assert len({event.action for event in events}) == 18
    for event in events:
        documented = ROWS[event.action]
        if event.action.endswith(".update"):
            assert all(set(change) == {"from", "to"} for change in event.details.values())
        elif event.action.endswith(".create"):
            assert documented in {"", "all fields"}
        else:
            seen = [*event.details, *event.details.get("lock", {})]
            if event.action == "state.restore":
                documented += ROWS["state.push"]
            if event.action in {"state.unlock", "state.force_unlock"}:
                documented += ROWS["state.lock"]
            assert [name for name in seen if f"`{name}`" not in documented] == []


def test_commands_are_named_consistently() -> None:
    """The reference promises `command` and the command's name: Actor.of_command gives both."""
    for path in ROOT.glob("*/management/commands/*.py"):
        assert "Actor(" not in path.read_text(), path
