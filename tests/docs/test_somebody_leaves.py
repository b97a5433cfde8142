"""The how-to guide for a person who leaves, walked while the service runs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Walk
from tests.support.server import LiveServer

PERSON = "from apikeys.models import User; User.objects.create_user('ada', password='p')"


def test_departed_user_is_deactivated(place: Path, service: LiveServer) -> None:
    options = ("--user", "ada", "--json")
    _, seeded, issued = service.run_commands(
        ("shell", "--no-imports", "-c", PERSON),
        ("seed_apikeys", *options, "--name", "deploy", "--scopes", "state:read,state:write"),
        ("issue_token", *options, "--name", "laptop", "--scopes", "state:read"),
    )
    secrets = [json.loads(seeded)["api_keys"][0]["secret"], json.loads(issued)["secret"]]
    words = {**manage_py(), "/etc/infra-service.env": str(service.directory / "service.env")}
    walk = Walk(place, readers(place, service.environment), words)

    assert walk.through(ROOT / "docs" / "how-to" / "somebody-leaves.md") == 6

    for secret in secrets:
        assert service.request("GET", "/v1/whoami", token=secret).status == 401
