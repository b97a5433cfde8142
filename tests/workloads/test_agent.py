"""The agent as it runs in a pod: a process with no setting of the service, and no database."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils.module_loading import import_string

from tests.apiserver import DEPLOYMENTS, ReplayServer, lines
from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT, wait_until
from tests.workloads.collector.registered import Registered

#: Packages that an agent does not need: tables, views, keys, and database drivers.
NEEDLESS = {
    "workloads.models", "workloads.actions", "workloads.reporting.applying", "rest_framework",
    "apikeys", "states", "infra_service.settings", "psycopg", "sqlite3", "django.views",
    "django.urls", "django.http", "django.db.models", "django.forms", "django.template",
}  # fmt: skip
SCRIPT = """
import json, sys
sys.argv[0] = "manage.py"
import manage
try:
    manage.main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""


class Agent:
    """An agent of a recorded cluster; it knows a token, an address and an id."""

    def __init__(self, api: ReplayServer, registered: Registered, directory: Path) -> None:
        self.registered = registered
        token = directory / "token"
        token.write_text(registered.token)
        self.options = [
            "--report-to", registered.live.url, "--cluster", str(registered.id), "--json",
            "--token-file", str(token), "--kubeconfig", str(api.kubeconfig(directory)),
        ]  # fmt: skip

    def start(self, *options: str, script: str = "") -> subprocess.Popen[str]:
        program = ["-c", script] if script else ["manage.py"]
        return subprocess.Popen(
            [sys.executable, *program, "sync_workloads", *self.options, *options],
            cwd=ROOT, env={"LOG_LEVEL": "WARNING"}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


@pytest.fixture
def agent(api: ReplayServer, live: LiveServer, tmp_path: Path) -> Agent:
    reader = live.token("cluster:read", "cluster:write")
    return Agent(api, Registered(live, reader), tmp_path)


def test_it_brings_the_rows_that_the_collector_writes(agent: Agent, api: ReplayServer) -> None:
    live, direct = agent.registered.live, Registered(agent.registered.live, agent.registered.reader)
    kubeconfig = agent.options[-1]
    name = direct.get()["cluster"]["name"]
    live.run_commands(("sync_workloads", "--cluster", name, "--kubeconfig", kubeconfig))

    running = agent.start(script=SCRIPT)
    out, err = running.communicate(timeout=MAX_WAIT)

    assert (running.returncode, err) == (0, "")
    line, modules = map(json.loads, out.splitlines())
    assert (line["report"], line["created"]) == ("snapshot", 54)
    assert line["cluster"] == str(agent.registered.id)
    assert NEEDLESS & set(modules) == set()
    rows = agent.registered.workloads()
    assert len(rows) == 54
    assert rows == direct.workloads()
    shown, expected = (
        {k: v for k, v in each.get()["cluster"].items() if k in {"uid", "workload_counts"}}
        for each in (agent.registered, direct)
    )
    assert shown == expected


def test_killed_at_any_moment_it_goes_on_where_the_cluster_is(
    agent: Agent, api: ReplayServer
) -> None:
    final = api.lists[DEPLOYMENTS]
    api.lists[DEPLOYMENTS] = []
    first = agent.start("--watch")
    try:
        wait_until(agent.registered.workloads)
    finally:
        first.kill()
        first.communicate()
    before = len(agent.registered.workloads())

    api.watches.scripts[DEPLOYMENTS].append(lines("watch-deployments-history.jsonl"))
    second = agent.start("--watch")
    try:
        wait_until(lambda: len(agent.registered.workloads()) == 54)
    finally:
        second.send_signal(signal.SIGTERM)
        _out, err = second.communicate(timeout=MAX_WAIT)

    assert (second.returncode, before) == (0, 54 - len(final)), err
    watched = agent.registered.workloads()
    api.lists[DEPLOYMENTS] = final
    once = agent.start("--once")
    out, _err = once.communicate(timeout=MAX_WAIT)
    assert json.loads(out)["unchanged"] == 54
    assert agent.registered.workloads() == watched


def test_output_contains_no_secrets(agent: Agent) -> None:
    """Also not by a service that sends the request back."""
    token = "iss_" + "a" * 38
    Path(agent.options[agent.options.index("--token-file") + 1]).write_text(token)

    running = agent.start("--once")
    out, err = running.communicate(timeout=MAX_WAIT)

    assert running.returncode == 1
    assert "401 CREDENTIALS_INVALID" in err
    assert token not in out + err


ID = "01a1fd68-ca28-7587-abb0-61c48a8a8478"
URL = "https://infra.example.com"


@pytest.mark.parametrize(("options", "message"), [
    (("--cluster", "prod-eu-1", "--report-to", URL), "--cluster must be the id of the cluster"),
    (("--cluster", ID, "--report-to", "http://infra.example.com", "--token-file", "t"),
     "the service's address must have the form https://host"),
    (("--cluster", ID, "--report-to", URL), "--report-to requires --token-file or --trust-policy"),
    (("--cluster", ID, "--report-to", URL, "--trust-policy", "fed-1"),
     "--trust-policy requires --identity-token-file"),
    (("--cluster", ID, "--report-to", URL, "--token-file", "t", "--token-cache", "c"),
     "--identity-token-file and --token-cache require --trust-policy"),
    (("--cluster", ID, "--report-to", URL, "--token-file", "t", "--trust-policy", "fed-1"),
     "not allowed with argument"),
    (("--all", "--report-to", URL, "--token-file", "t"), "an agent reports a single cluster"),
    (("--cluster", ID, "--report-to", URL, "--token-file", "t", "--ca-file", "/nonexistent"),
     "/nonexistent contains no certificate authorities"),
    (("--cluster", ID, "--report-to", URL, "--token-file", "t", "--kubeconfig", "/nonexistent"),
     "Invalid kube-config file"),
    (("--cluster", "prod-eu-1", "--token-file", "t"), "--token-file requires --report-to"),
    (("--cluster", "prod-eu-1", "--ca-file", "t"), "--ca-file requires --report-to"),
])  # fmt: skip
def test_invalid_options_are_rejected(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("sync_workloads", *options)


def test_its_settings_are_of_no_service() -> None:
    """No key, database or address: a cluster need not have these."""
    from infra_service.agent import settings  # noqa: PLC0415 - not those of these tests

    assert {name for name in vars(settings) if name.isupper()} == {
        "INSTALLED_APPS", "DATABASES", "USE_TZ", "TIME_ZONE", "USE_I18N",
        "LOG_LEVEL", "LOGGING_CONFIG", "LOGGING",
    }  # fmt: skip
    assert settings.DATABASES == {}
    apps = [import_string(path) for path in settings.INSTALLED_APPS]
    assert [app.name for app in apps] == ["infra_service", "workloads"]
