"""The body of a webhook of Slack's, as Slack documents it."""

import json
import re
import uuid
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infra_service.webhooks.event_types import TYPES
from infra_service.webhooks.models import WebhookEvent
from infra_service.webhooks.slack import slack_message
from states.models import Component, Environment
from tests.conftest import ApiClient
from tests.docs.walk import ROOT
from tests.infra_service.webhooks.conftest import PATH, deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.states.conftest import Backend, document
from tests.workloads.records import apply, record, report
from workloads.models import Cluster

TEXTS = st.text(max_size=200)


def section(message: dict[str, Any]) -> str:
    """Return the text of the only section, if Slack would accept the message."""
    assert message.keys() == {"text", "blocks"}
    assert message["text"]
    (block,) = message["blocks"]
    assert block.keys() == {"type", "text"}
    assert (block["type"], block["text"]["type"]) == ("section", "mrkdwn")
    assert block["text"]["verbatim"] is True
    text: str = block["text"]["text"]
    assert 1 <= len(text) <= 3000
    return text


def test_a_broken_lock(client: ApiClient, backend: Backend, receiver: Receiver) -> None:
    hook_of(client, receiver, "state.force_unlock", format="slack")
    backend.push(document())
    backend.lock(uuid.uuid4(), Who="ada <ada@laptop>", Operation="OperationTypeApply")
    Component.objects.update(slug="network")
    Environment.objects.update(slug="production")
    backend.unlock(None)

    deliver()

    (one,) = receiver.received
    text = section(one.payload)
    assert text.startswith("*A lock was force-unlocked*\nState: network in production\n")
    assert "Locked by: ada &lt;ada@laptop&gt; for OperationTypeApply" in text
    assert "By: operator" in text
    assert "webhook-signature" in one.headers


def test_test_message_is_delivered(client: ApiClient, receiver: Receiver) -> None:
    hook = hook_of(client, receiver, "state.push", format="slack")
    client.send("POST", f"{PATH}/{hook.id}:test")

    deliver()

    (one,) = receiver.received
    assert section(one.payload) == "*A test of a webhook*\nAbout: test"


def test_a_deleted_cluster_with_workloads(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.delete", format="slack")
    cluster = Cluster.objects.create(name="prod")
    apply(cluster, report(0, record("a"), record("b")))
    client.delete(f"/api/v1/clusters/{cluster.pk}")

    deliver()

    (one,) = receiver.received
    assert section(one.payload).splitlines() == [
        "*A cluster was deleted*", "About: prod", "Workloads: 2", "By: operator",
    ]  # fmt: skip


@given(
    st.sampled_from(sorted(TYPES)),
    st.fixed_dictionaries({"name": TEXTS, "actor": TEXTS, "reason": TEXTS, "address": TEXTS}),
    TEXTS,
    st.booleans(),
)
def test_any_text_fits(kind: str, fields: dict[str, str], user: str, of_state: bool) -> None:
    data: dict[str, Any] = {"id": "x", **fields}
    if kind.startswith("workload."):
        one = {
            "id": user, "namespace": user, "name": user, "from_health_status": None,
            "to_health_status": None, "status_reason": user, "changes": 2,
        }  # fmt: skip
        data |= {"workloads": [one] * 20, "workloads_changed": 15_000}
    else:
        data["lock"] = {"who": user, "operation": user}
    if of_state:
        slugs = dict.fromkeys(("component", "environment", "application"), "s" * 100)
        data |= {"component_id": "c", "environment_id": "e", **slugs}
    text = section(slack_message(WebhookEvent(type=kind, data=data)))

    # Nothing that Slack would read as a link, a mention or an unfinished escape.
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", text)


def test_a_value_is_a_single_line() -> None:
    lock = {"who": "ada\n*Approved by:* security\u2028\u202e", "operation": ""}
    data = {"id": "x", "name": "x", "lock": lock}

    text = section(slack_message(WebhookEvent(type="state.lock_held", data=data)))

    assert text.splitlines()[2] == "Locked by: ada *Approved by:* security for work"


def test_reference_shows_a_message() -> None:
    text = (ROOT / "docs" / "reference" / "webhooks.md").read_text()
    (shown,) = re.findall(r"```json\n(\{\"text\".*?)\n```", text)
    event = WebhookEvent(
        type="state.lock_held",
        data={
            "id": "x", "component_id": "c", "component": "network", "environment_id": "e",
            "environment": "production", "application": None,
            "lock": {"who": "ada@laptop", "operation": "OperationTypeApply"},
            "held_since": "2026-11-23T08:00:00.000000Z",
        },
    )  # fmt: skip

    assert json.loads(shown) == slack_message(event)
