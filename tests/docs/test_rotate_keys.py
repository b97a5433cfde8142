"""The how-to guide of keys, walked while the index and webhooks are running."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e.backend import Backend
from tests.infra_service.webhooks.receiver import receiving
from tests.states.indexed import with_things
from tests.support.server import LiveServer
from tests.support.waiting import wait_until

JSON = {"Content-Type": "application/json"}


class Services:
    """The web service, ``index_states`` and ``deliver_events``, restarted together."""

    def __init__(self, web: LiveServer) -> None:
        self.web = web
        self._workers: list[subprocess.Popen[bytes]] = []

    def restart(self) -> None:
        self.stop_workers()
        assert self.web.stop() == 0
        self.web.start()
        self._workers = [
            subprocess.Popen(
                [sys.executable, "manage.py", command, "--watch", "--interval", "0.2"],
                cwd=ROOT,
                env=self.web.environment,
                stdout=subprocess.DEVNULL,
            )
            for command in ("index_states", "deliver_events")
        ]

    def stop_workers(self) -> None:
        for worker in self._workers:
            worker.terminate()
        assert [worker.wait(60) for worker in self._workers] == [0] * len(self._workers)
        self._workers = []


@pytest.fixture
def services(service: LiveServer) -> Iterator[Services]:
    service.environment["WEBHOOK_NETWORKS"] = "127.0.0.0/8"
    started = Services(service)
    started.restart()
    yield started
    started.stop_workers()
    del service.environment["WEBHOOK_NETWORKS"]


def webhook_at(url: str, service: LiveServer, token: str) -> str:
    """Create a webhook for pushes, and return its secret."""
    fields = {"name": "rotation", "url": url, "event_types": ["state.push"]}
    body = json.dumps({"webhook": fields}).encode()
    made = service.request("POST", "/api/v1/webhooks", body, token=token, headers=JSON)
    assert made.status == 201, made.content
    secret: str = made.json()["secret"]
    return secret


def finds(service: LiveServer, token: str, value: str) -> Any:
    """Return the resources that a value identifies."""
    body = json.dumps({"value": value}).encode()
    found = service.request("POST", "/api/v1/resources:find", body, token=token, headers=JSON)
    return found.json()["resources"]


def test_keys_are_rotated_as_documented(
    place: Path, service: LiveServer, services: Services
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on the PATH")
    soon = (dt.datetime.now(dt.UTC) + dt.timedelta(days=3)).isoformat()
    common = ("--user", "operator", "--json", "--name")
    scopes = ("--scopes", "apikey:write,state:write")
    seeded, old, ends_soon, audit = service.run_commands(
        ("seed_apikeys", *common, "rotating", *scopes),
        ("issue_token", *common, "old", *scopes),
        ("issue_token", *common, "soon", *scopes, "--expires-at", soon),
        ("issue_token", *common, "audit", "--scopes", "audit:read,state:write"),
    )
    auditor = json.loads(audit)["secret"]
    settings = service.directory / "service.env"
    old_key = settings.read_text()

    environment = {
        **readers(place, service.environment),
        "KEY": json.loads(seeded)["api_keys"][0]["secret"],
        "OLD_TOKEN_ID": json.loads(old)["id"],
        "ENDS_SOON": json.loads(ends_soon)["secret"],
    }
    words = {"http://127.0.0.1:8000": service.url, "isp_…": auditor, **manage_py()}
    words["/etc/infra-service.env"] = str(settings)
    (token,) = service.tokens("webhook:write,state:read,state:write")
    backend = Backend(service, token)
    serials: list[int] = []
    systemctl = "systemctl restart 'infra-service@*' infra-index infra-webhooks"
    with receiving() as receiver:
        secret = webhook_at(receiver.url, service, token)

        def push_and_wait() -> None:
            """Push a document, and wait until the index and the webhook have it."""
            serials.append(len(serials) + 1)
            value = f"i-{serials[-1]}"
            assert backend.push(with_things(serials[-1], a=value)).status == 200
            wait_until(lambda: finds(service, token, value))
            wait_until(lambda: len(receiver.received) == len(serials))

        def restart() -> str:
            services.restart()
            push_and_wait()
            return ""

        push_and_wait()
        walk = Walk(place, environment, words, {systemctl: restart})

        assert walk.through(ROOT / "docs/how-to/rotate-keys.md")

        assert serials == [1, 2, 3, 4]
        assert old_key.strip().partition("=")[2] not in settings.read_text()
        assert finds(service, token, "i-4")
        for message in receiver.received:
            Webhook(secret).verify(message.body, message.headers)
        index = service.request("GET", "/api/v1/resource-index", token=token).json()[
            "resource_index"
        ]
        # Other modules leave states on this server that are unreadable for reasons of their own.
        problems = {state["problem"] for state in index["unreadable"]}
        assert not {problem for problem in problems if problem.startswith("DOCUMENT_")}
