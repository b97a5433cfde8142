"""manage.py deliver_events: deliver due events once, or until stopped."""

import json
import os
import signal
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apikeys.models import AuditEvent
from infra_service.webhooks import publishing
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers
from tests.infra_service.webhooks.test_trail import event


def run(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, int]:
    """Return the counts that the command prints."""
    capsys.readouterr()
    call_command("deliver_events", "--json", *options)
    counts: dict[str, int] = json.loads(capsys.readouterr().out)
    return counts


def test_single_pass_ends(
    client: ApiClient, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    hook_of(client, receiver, "cluster.create")
    event("a").save()
    receiver.answer = answers(500)
    assert run(capsys) == {"delivered": 0, "failed": 1}

    receiver.answer = answers(204)
    event("b").save()
    assert run(capsys) == {"delivered": 1, "failed": 0}
    assert len(receiver.received) == 2


def test_failed_item_fails_a_single_run(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other items are delivered, and the exit status reports the failure."""
    hook_of(client, receiver, "cluster.create")
    bad, good = event("bad"), event("good")
    bad.save()
    good.save()
    original = publishing._event_of

    def fail(one: AuditEvent, *others: Any) -> Any:
        if one.pk == bad.pk:
            raise LookupError
        return original(one, *others)

    monkeypatch.setattr(publishing, "_event_of", fail)
    with pytest.raises(CommandError, match=r"1 items failed, .* \(publish an event\)"):
        call_command("deliver_events")
    assert len(receiver.received) == 1


def test_until_it_is_stopped(
    client: ApiClient, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deliveries in progress at SIGTERM are recorded."""
    hook_of(client, receiver, "cluster.create")
    event("a").save()

    def stop_it(handler: BaseHTTPRequestHandler) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        answers(204)(handler)

    receiver.answer = stop_it

    assert run(capsys, "--watch", "--interval", "0.1") == {"delivered": 1, "failed": 0}


@pytest.mark.parametrize("interval", ["0", "nan"])
def test_interval_of_zero_is_rejected(db: None, interval: str) -> None:
    with pytest.raises(CommandError, match="--interval must be greater than 0 seconds"):
        call_command("deliver_events", "--watch", "--interval", interval)
