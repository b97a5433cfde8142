"""The commands of the how-to guide on webhooks, with two receivers and ``deliver_events``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.conftest import readers
from tests.docs.walk import ROOT, Walk
from tests.infra_service.webhooks.receiver import receiving
from tests.infra_service.webhooks.test_ocsf import check
from tests.states.conftest import document
from tests.support.server import LiveServer, running

PAGE = ROOT / "docs" / "how-to" / "receive-webhooks.md"


def test_receive_webhooks(place: Path) -> None:
    server = LiveServer(place, WEB_WORKERS="1", WEBHOOK_NETWORKS="127.0.0.0/8")
    with receiving() as hooks, receiving() as siem, running(server):
        key = server.api_key("webhook:write", "state:read")
        token = server.token("webhook:write,audit:read")
        reader = {
            **readers(place, server.environment),
            "BASE_URL": server.url, "KEY": key, "TOKEN": token,
        }  # fmt: skip
        words = {
            "https://hooks.example.com/infra": hooks.url,
            "https://siem.example.com/infra": siem.url,
        }

        walk = Walk(place, reader, words)
        assert walk.through(PAGE) == 4

        writer = server.token("state:read", "state:write")
        for environment in ("production", "staging"):
            path = f"/api/v1/state/at/network/{environment}"
            assert server.request("POST", path, document(1), token=writer).status == 200
        command = [sys.executable, "manage.py", "deliver_events"]
        subprocess.run(command, cwd=ROOT, env=server.environment, check=True)

    assert hooks.types() == ["webhook.test", "state.push"]
    assert hooks.received[1].payload["data"]["environment"] == "production"
    operations = [message.payload["api"]["operation"] for message in siem.received]
    assert operations.count("state.push") == 2
    for message in siem.received:
        check(message.payload)
