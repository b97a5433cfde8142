"""manage.py deliver_events: what is due once, or until it is stopped."""

import json
import os
import signal
from http.server import BaseHTTPRequestHandler

import pytest
from django.core.management import CommandError, call_command

from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers
from tests.infra_service.webhooks.test_trail import event


def run(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, int]:
    """Return what the command counts."""
    capsys.readouterr()
    call_command("deliver_events", "--json", *options)
    counts: dict[str, int] = json.loads(capsys.readouterr().out)
    return counts


def test_once(client: ApiClient, receiver: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    hook_of(client, receiver, "cluster.create")
    event("a").save()
    receiver.answer = answers(500)
    assert run(capsys) == {"delivered": 0, "failed": 1}

    receiver.answer = answers(204)
    event("b").save()
    assert run(capsys) == {"delivered": 1, "failed": 0}
    assert len(receiver.received) == 2


def test_until_it_is_stopped(
    client: ApiClient, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is on its way when SIGTERM comes is written down."""
    hook_of(client, receiver, "cluster.create")
    event("a").save()

    def stop_it(handler: BaseHTTPRequestHandler) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        answers(204)(handler)

    receiver.answer = stop_it

    assert run(capsys, "--watch", "--interval", "0.1") == {"delivered": 1, "failed": 0}


def test_an_interval_of_nothing(db: None) -> None:
    with pytest.raises(CommandError, match="--interval is more than 0 seconds"):
        call_command("deliver_events", "--watch", "--interval", "0")
