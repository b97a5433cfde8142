"""The how-to guide of monitoring: its commands and its configuration, on a live server."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Shell, matches, steps
from tests.e2e.backend import Backend, document
from tests.support.server import LiveServer, live_server

PAGE = ROOT / "docs" / "how-to" / "monitor.md"
TEXT = PAGE.read_text()


@pytest.fixture
def server() -> Iterator[LiveServer]:
    """A server with the networks of the page, and with the requests of its example."""
    (networks,) = re.findall(r"^METRICS_NETWORKS=(.+)$", TEXT, re.MULTILINE)
    with live_server(METRICS_NETWORKS=networks, WEB_WORKERS="1") as server:
        backend = Backend(server, server.token("state:read", "state:write"))
        for serial in (1, 2, 2):
            assert backend.push(document(serial)).status == 200
        assert backend.get().status == 200
        assert backend.lock(str(uuid.uuid4())).status == 200
        assert backend.lock(str(uuid.uuid4())).status == 423
        yield server


def test_prometheus_reaches_the_target_and_finds_the_rules(server: LiveServer) -> None:
    (configuration,) = [step for step in steps(TEXT) if step.file == "prometheus.yml"]
    prometheus = yaml.safe_load(configuration.content)
    (job,) = prometheus["scrape_configs"]
    (targets,) = job["static_configs"]

    assert [(PAGE.parent / file).is_file() for file in prometheus["rule_files"]] == [True]
    assert targets == {"targets": ["127.0.0.1:8000"]}
    # Prometheus' own path, which nothing in the file changes.
    assert server.request("GET", "/metrics").status == 200
    via_proxy = server.request("GET", "/metrics", headers={"X-Forwarded-For": "127.0.0.1"})
    assert via_proxy.status == 403


def test_each_documented_command_works(server: LiveServer, place: Path) -> None:
    request_id = server.request("GET", "/admin/login/").headers["X-Request-ID"]
    # The server's log replaces the journal, and every request counts as slow.
    words = {
        **manage_py(),
        "127.0.0.1:8000": f"127.0.0.1:{server.port}",
        "journalctl -u 'infra-service@*' -o cat --since -1h": f"cat {server.log}",
        "journalctl -u 'infra-service@*' -o cat": f"cat {server.log}",
        "01a1ff9035da75b5939c1e3caaf09e55": request_id,
        ".duration_ms > 1000": ".duration_ms > 0",
        "/run/infra-index/heartbeat": str(place / "heartbeat"),
    }
    printed: dict[str, list[str]] = {}
    shell = Shell(place, readers(place, server.environment))
    try:
        for step in steps(TEXT):
            if not step.command:
                continue
            command = step.command
            for placeholder, meant in words.items():
                command = command.replace(placeholder, meant)
            if "--watch" in command:
                command += " > /dev/null 2>&1 & for i in $(seq 500); do "
                command += f"test -e {place}/heartbeat && break; sleep 0.2; done"
            code, lines = shell.run(command)
            assert code == 0, (step.command, lines)
            if step.output:
                assert matches(step.output, lines, any_figures=True), lines
            printed[step.command] = lines
    finally:
        shell.close()

    of_one, slow = [lines for name, lines in printed.items() if name.startswith("journalctl")]
    assert {json.loads(line)["request_id"] for line in of_one} == {request_id}
    fields = {"view", "status", "duration_ms", "database_ms", "queries"}
    assert all(json.loads(line).keys() == fields for line in slow)
    assert slow
    assert time.time() - (place / "heartbeat").stat().st_mtime < 60
