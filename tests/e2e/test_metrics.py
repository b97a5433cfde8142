"""``/metrics`` of a live service: all processes, across reloads, and the metrics in docs/how-to."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection
from django.urls import URLPattern

from infra_service.key_canary import EncryptionKeyWrong
from states.api.backend import StateView
from states.errors import DocumentUnreadable, StorageMisconfigured, StorageUnavailable
from states.urls import urlpatterns
from tests.e2e.backend import Backend, document
from tests.support.figures import Figures, parsed, value
from tests.support.server import LiveServer, live_server
from tests.support.waiting import wait_until

JSON = {"Content-Type": "application/json"}
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"


@pytest.fixture(scope="module")
def own_server() -> Iterator[LiveServer]:
    with live_server() as server:
        yield server


@pytest.fixture(scope="module")
def own_token(own_server: LiveServer) -> str:
    return own_server.token("state:read", "state:write")


@pytest.fixture
def own(own_server: LiveServer, own_token: str) -> Backend:
    """A new state of a server of our own."""
    return Backend(own_server, own_token)


def scrape(server: LiveServer) -> Figures:
    answer = server.request("GET", "/metrics")
    assert answer.status == 200
    return parsed(answer.body.decode())


def stored(server: LiveServer) -> float:
    return value(scrape(server), "infra_state_pushes_total", result="stored")


def test_figures_are_of_all_workers_and_survive_them(own: Backend) -> None:
    server = own.server
    files = server.directory / "metrics"
    before_all = stored(server)
    pushed = 0
    # Each request uses a new connection, which the kernel gives to either worker.
    kept = {files / f"counter_{pid}.db" for pid in (0, server.pid)}
    while pushed < 20 or len({*files.glob("counter_*.db")} - kept) < 2:
        pushed += 1
        assert pushed < 1000
        assert own.push(document(pushed)).status == 200
    assert {stored(server) for _ in range(10)} == {before_all + pushed}

    before = set(server.workers())
    server.signal(signal.SIGHUP)
    replaced(server, before)
    assert {stored(server) for _ in range(5)} == {before_all + pushed}
    # Two workers, their parent process, and all former workers.
    names = {path.name for path in files.glob("counter_*.db")}
    here = (0, server.pid, *server.workers())
    assert names <= {f"counter_{pid}.db" for pid in here}


def replaced(server: LiveServer, before: set[int]) -> None:
    """Wait until all of these workers have ended, and their counts are merged."""
    files = [server.directory / "metrics" / f"counter_{pid}.db" for pid in before]
    wait_until(lambda: before.isdisjoint(server.workers()))
    wait_until(lambda: not any(file.exists() for file in files))


def test_a_killed_worker_takes_no_count_along(own: Backend) -> None:
    server = own.server
    before = stored(server)
    victim = server.workers()[0]

    os.kill(victim, signal.SIGKILL)
    replaced(server, {victim})

    assert stored(server) == before


def test_counts_return_after_the_directory_was_removed() -> None:
    with live_server() as server:
        assert Backend(server, server.token("state:write")).push(document(1)).status == 200

        shutil.rmtree(server.directory / "metrics")

        assert server.request("GET", "/metrics").status == 200
        wait_until(lambda: stored(server) == 1, 60)


def test_without_a_place_for_the_counts_it_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server = LiveServer(tmp_path, VAR_DIR=str(tmp_path / "file"), DATABASE_URL="sqlite://:memory:")

    with pytest.raises(RuntimeError, match="VAR_DIR must be a directory that this user can write"):
        server.start()

    assert server.ended() == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {"REMOTE_DEFAULT_ENVIRONMENT": "Not a slug"},
            r"states\.E004.*REMOTE_DEFAULT_ENVIRONMENT",
        ),
        ({"SECRET_KEY": "hunter2"}, r"SECRET_KEY is weak(.|\n)*openssl rand -base64 48"),
    ],
)
def test_with_a_setting_that_a_check_rejects_it_does_not_start(
    tmp_path: Path, bad: dict[str, str], message: str
) -> None:
    """gunicorn runs no command, so it would not run the checks of the commands."""
    server = LiveServer(tmp_path, DATABASE_URL="sqlite://:memory:", **bad)

    with pytest.raises(RuntimeError, match=message):
        server.start()

    assert server.ended() == 1


def named(expression: str) -> set[str]:
    """Return the metrics of a PromQL expression."""
    return set(re.findall(r"\b(?:infra|django)_\w+", expression))


def panels_by_expression() -> dict[str, str]:
    dashboard: dict[str, Any] = json.loads((HOW_TO / "grafana-dashboard.json").read_text())
    return {
        target["expr"]: panel["title"]
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }


def alerts_by_expression() -> dict[str, str]:
    rules = yaml.safe_load((HOW_TO / "alerts.yaml").read_text())["groups"][0]["rules"]
    return {rule["expr"]: rule["alert"] for rule in rules}


def test_dashboard_and_alerts_use_existing_metrics(live: LiveServer) -> None:
    token = live.token("state:read", "state:write", "cluster:write")
    cluster = {"cluster": {"name": "metrics"}}
    made = live.request(
        "POST", "/api/v1/clusters", json.dumps(cluster).encode(), token=token, headers=JSON
    )
    path = f"/api/v1/clusters/{made.json()['cluster']['id']}/workloads"
    report = {"reported_at": "2026-01-01T00:00:00Z", "workloads": []}
    answer = live.request("PUT", path, json.dumps(report).encode(), token=token, headers=JSON)
    assert answer.status == 200
    other = {"cluster": {"name": "unreadable"}}
    made = live.request(
        "POST", "/api/v1/clusters", json.dumps(other).encode(), token=token, headers=JSON
    )
    path = f"/api/v1/clusters/{made.json()['cluster']['id']}/workloads:report-failure"
    failure = json.dumps({"reason": "FORBIDDEN"}).encode()
    assert live.request("POST", path, failure, token=token, headers=JSON).status == 204
    assert Backend(live, token).push(b"[]").status == 400
    scraped = {name for name, _labels in scrape(live)}
    if connection.vendor == "sqlite":
        scraped.add("infra_partitions_ready")  # which only PostgreSQL has

    panels, alerts = panels_by_expression(), alerts_by_expression()
    for expression, title in (panels | alerts).items():
        assert named(expression) <= scraped, title
        assert named(expression) or "up{" in expression, title
    assert (len(panels), len(alerts)) == (23, 28)


def test_only_counters_are_added_up() -> None:
    """Each instance returns the gauges of the database."""
    for expression, title in (panels_by_expression() | alerts_by_expression()).items():
        assert "sum" not in expression or "_total" in expression or "_bucket" in expression, title


def test_alerts_cover_each_fault_of_documents_their_keys_and_their_store() -> None:
    faults = {
        *DocumentUnreadable.__subclasses__(),
        EncryptionKeyWrong,
        StorageUnavailable,
        StorageMisconfigured,
    }
    patterns = [p for e in alerts_by_expression() for p in re.findall(r'reason=~?"(.*?)"', e)]

    reasons = {fault.default_code for fault in faults}
    missing = {r for r in reasons if not any(re.fullmatch(pattern, r) for pattern in patterns)}
    assert missing == {"STORAGE_INCONSISTENT"}  # infra_storage_faults counts it


def test_dashboard_shows_refused_pushes_at_each_address() -> None:
    (pattern,) = re.findall(r'view=~"(state.*?)"', " ".join(panels_by_expression()))
    routes = [route for route in urlpatterns if isinstance(route, URLPattern)]

    pushes = {
        str(route.name)
        for route in routes
        if issubclass(getattr(route.callback, "view_class", object), StateView)
    }
    shown = {name for name in pushes if re.fullmatch(pattern, name)}
    assert pushes - shown == {"state-no-address"}


def test_each_alert_has_a_documented_response() -> None:
    page = (HOW_TO / "monitor.md").read_text()
    rules = yaml.safe_load((HOW_TO / "alerts.yaml").read_text())["groups"][0]["rules"]
    rows = re.findall(r"^\| ((?:`Infra\w+`(?:, )?)+) \|", page, re.MULTILINE)

    explained = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert explained == [rule["alert"] for rule in rules]
