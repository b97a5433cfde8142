"""Operators' commands, on the demo data, an S3-compatible store, and a recorded cluster."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver import ReplayServer
from tests.docs.conftest import readers
from tests.docs.walk import ROOT, Walk
from tests.docs.warm import manage_py
from tests.e2e import object_store
from tests.support.server import LiveServer

pytestmark = pytest.mark.long

DOCS = ROOT / "docs"
REGISTER = "from workloads.models import Cluster; Cluster.objects.create(name='prod-eu-1')"


@pytest.fixture
def store_url() -> Iterator[str]:
    with object_store.running() as port:
        yield (
            f"s3://key:secret@{object_store.BUCKET}/prefix?endpoint_url=http://127.0.0.1:{port}"
            "&region_name=us-east-1&addressing_style=path"
        )


@pytest.fixture
def installation(place: Path) -> Iterator[LiveServer]:
    """An installation with data, without a running server."""
    (place / "var").mkdir()
    server = LiveServer(place / "var")
    try:
        server.prepare()
        server.run_commands(
            ("seed_demo", "--states", "8", "--clusters", "1", "--workloads", "1"),
            ("shell", "--no-imports", "-c", REGISTER),
        )
        yield server
    finally:
        server.close()


def test_documented_commands_match(place: Path, installation: LiveServer, store_url: str) -> None:
    named = ("--user", "operator", "--name", "leaked", "--scopes", "state:read", "--json")
    key, token = (
        json.loads(text)
        for text in installation.run_commands(("seed_apikeys", *named), ("issue_token", *named))
    )
    found = f"KEY={key['api_keys'][0]['secret']}\nTOKEN={token['secret']}\n"
    (place / "leaked.txt").write_text(found)
    environment = {
        **readers(place, installation.environment),
        "STATE_STORAGE_URL": store_url,
    }
    by_hand = {".venv/bin/pip install --require-hashes -r requirements-s3.txt": lambda: ""}

    with manage_py(place, environment) as command, ReplayServer() as api:
        words = {
            "2027-01-01T00:00:00Z": "2999-01-01T00:00:00Z",
            # seed_demo, which comes later, refuses where there is an archive.
            "2026-01-01": "2020-01-01",
            "--clusters 20 --workloads 10000": "--states 9 --workloads 2",
            ".venv/bin/python manage.py": command,
        }
        walk = Walk(place, environment, words, by_hand, any_figures=True)
        api.kubeconfig(place, "prod-eu-1").rename(place / "prod.kubeconfig")
        assert walk.through(DOCS / "reference" / "commands.md")
        # Events of the demo data are older.
        two_days_ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
        words["2026-01-01"] = f"{two_days_ago:%Y-%m-%d}"
        for name in ("/etc/infra-service.env", "/etc/infra-owner.env", "/srv/audit-archives"):
            words[name] = str(place / name.replace("/", "-"))
        for name in ("infra-service.env", "infra-owner.env"):
            (place / f"-etc-{name}").touch()
        assert walk.through(DOCS / "how-to" / "retention.md")
        assert walk.through(DOCS / "how-to" / "object-storage.md")
