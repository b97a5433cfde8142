"""``manage.py sync_workloads``; watching takes a process of its own: test_end_to_end."""

from __future__ import annotations

import io
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.apiserver import DEPLOYMENTS, FORBIDDEN, PODS, ReplayServer
from tests.support.terminal import Terminal
from tests.workloads.records import apply, record, report, stored
from workloads.collector import connect, sync
from workloads.models import Cluster


@pytest.fixture
def kubeconfig(api: ReplayServer, tmp_path: Path) -> str:
    return str(api.kubeconfig(tmp_path))


def run(*arguments: str, stderr: io.StringIO | None = None) -> str:
    out = io.StringIO()
    call_command("sync_workloads", *arguments, stdout=out, stderr=stderr or io.StringIO())
    return out.getvalue()


def test_single_pass_ends(cluster: Cluster, kubeconfig: str) -> None:
    output = run("--cluster", cluster.name, "--kubeconfig", kubeconfig)

    assert output.startswith("prod-eu-1: 54 created, 0 updated, 0 deleted, 0 unchanged (")
    assert len(stored(cluster)) == 54
    cluster.refresh_from_db()
    assert cluster.report_interval_seconds == 60


def test_json_output_is_complete(cluster: Cluster, kubeconfig: str) -> None:
    options = ("--cluster", cluster.name, "--kubeconfig", kubeconfig, "--json", "--once")
    run(*options, "--interval", "300")

    line = json.loads(run(*options))

    assert line.pop("seconds") >= 0
    assert line == {
        "cluster": "prod-eu-1", "report": "snapshot",
        "created": 0, "updated": 0, "deleted": 0, "unchanged": 54,
    }  # fmt: skip
    cluster.refresh_from_db()
    assert cluster.report_interval_seconds == 300


def test_progress_is_for_terminals(
    cluster: Cluster, kubeconfig: str, each_count_is_drawn: None
) -> None:
    options = ("--cluster", cluster.name, "--kubeconfig", kubeconfig)
    terminal, pipe = Terminal(), io.StringIO()
    run(*options, stderr=terminal)
    run(*options, stderr=pipe)
    run(*options, "--json", stderr=pipe)

    assert "prod-eu-1: pods 119, " in " ".join(terminal.drawn)
    assert terminal.getvalue().rpartition("\r ")[2].strip() == ""  # nothing is left behind
    assert pipe.getvalue() == ""


def test_progress_shows_count_and_total(
    cluster: Cluster, kubeconfig: str, monkeypatch: pytest.MonkeyPatch, each_count_is_drawn: None
) -> None:
    monkeypatch.setattr("workloads.collector.client.PAGE_SIZE", 100)
    terminal = Terminal()

    run("--cluster", cluster.name, "--kubeconfig", kubeconfig, stderr=terminal)

    pods = [text for text in terminal.drawn if text.startswith("prod-eu-1: pods")]
    assert [text for text in pods if " 100 of 119, " in text]


def test_all_clusters_are_synced(api: ReplayServer, tmp_path: Path, db: None) -> None:
    kubeconfig = str(api.kubeconfig(tmp_path, "one", "two", "unregistered"))
    clusters = [Cluster.objects.create(name=name) for name in ("one", "three", "two")]
    stderr = io.StringIO()

    output = run("--all", "--kubeconfig", kubeconfig, stderr=stderr)

    assert [line.split(":")[0] for line in output.splitlines()] == ["one", "two"]
    assert stderr.getvalue() == "three: skipped, the kubeconfig has no context of this name\n"
    assert [len(stored(cluster)) for cluster in clusters] == [54, 0, 54]


def test_failure_of_a_cluster_does_not_stop_other_clusters(
    api: ReplayServer, tmp_path: Path, db: None
) -> None:
    kubeconfig = str(api.kubeconfig(tmp_path, "one", "two"))
    one, two = (Cluster.objects.create(name=name) for name in ("one", "two"))
    api.faults[PODS].append(FORBIDDEN)

    with pytest.raises(CommandError, match=r"^one: 403: "):
        run("--all", "--kubeconfig", kubeconfig)

    assert (len(stored(one)), len(stored(two))) == (0, 54)


@pytest.mark.parametrize("failing", ["sync.read_cluster", "from_kubeconfig"])
def test_exception_of_a_cluster_does_not_stop_other_clusters(
    api: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, db: None
) -> None:
    kubeconfig = str(api.kubeconfig(tmp_path, "one", "two"))
    one, two = (Cluster.objects.create(name=name) for name in ("one", "two"))
    owner: Any = sync if "." in failing else connect
    name = failing.rpartition(".")[2]
    real, calls = getattr(owner, name), []

    def fails_first(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise ZeroDivisionError("a fault of ours")
        return real(*arguments)

    monkeypatch.setattr(owner, name, fails_first)

    with pytest.raises(CommandError, match=r"^one: a fault of ours$"):
        run("--all", "--kubeconfig", kubeconfig)

    assert (len(stored(one)), len(stored(two))) == (0, 54)


@pytest.mark.parametrize("case", [
    (("other", "prod-eu-1"), (), "prod-eu-1"),  # named after the cluster
    (("other", "third"), (), "other"),  # else the current context
    (("prod-eu-1", "other"), ("--context", "other"), "other"),
])  # fmt: skip
def test_selected_context_is_used(
    cluster: Cluster, api: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    case: Any,
) -> None:  # fmt: skip
    contexts, options, expected = case
    real, taken = connect.from_kubeconfig, []

    def from_kubeconfig(kubeconfig: str | None, context: str) -> Any:
        taken.append(context)
        return real(kubeconfig, context)

    monkeypatch.setattr(connect, "from_kubeconfig", from_kubeconfig)

    kubeconfig = str(api.kubeconfig(tmp_path, *contexts))
    run("--cluster", cluster.name, "--kubeconfig", kubeconfig, *options)

    assert taken == [expected]


def test_account_of_the_pod_is_used(
    cluster: Cluster, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect.from_kubeconfig(kubeconfig, "replay")
    monkeypatch.setattr(connect, "in_cluster", lambda: client)

    assert "54 created" in run("--cluster", cluster.name, "--in-cluster")


@pytest.mark.both
@pytest.mark.parametrize(("options", "message"), [
    (("--cluster", "unknown"), "no cluster is registered as 'unknown'; register it"),
    (("--cluster", "prod-eu-1", "--kubeconfig", "/nonexistent"), "Invalid kube-config file"),
    (("--cluster", "prod-eu-1", "--interval", "0"), "--interval must be from 1 to 86400 seconds"),
    (("--cluster", "prod-eu-1", "--interval", "86401"), "--interval must be from 1"),
    (("--all", "--in-cluster"), "--all requires a kubeconfig"),
    (("--all", "--context", "x"), "--all requires a kubeconfig"),
    ((), "one of the arguments --cluster --all is required"),
    (("--cluster", "a", "--all"), "not allowed with argument"),
    (("--all", "--once", "--watch"), "not allowed with argument"),
])  # fmt: skip
def test_invalid_options_are_rejected(cluster: Cluster, options: Any, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*options)


def test_other_cluster_is_refused(cluster: Cluster, kubeconfig: str) -> None:
    apply(cluster, report(0, record(), cluster_uid="another"))

    with pytest.raises(CommandError, match="prod-eu-1: This cluster has the uid another, but"):
        run("--cluster", cluster.name, "--kubeconfig", kubeconfig)
    assert len(stored(cluster)) == 1


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, CommandError), (signal.SIGINT, KeyboardInterrupt)]
)
def test_signals_end_a_list(
    cluster: Cluster, api: ReplayServer, kubeconfig: str, number: int, raised: type[BaseException]
) -> None:
    """Nothing is stored of it, and the handlers of before are back."""
    before = signal.getsignal(number)

    def interrupt(path: str, _query: dict[str, str]) -> None:
        if path == DEPLOYMENTS:
            os.kill(os.getpid(), number)
            api.watches.hang_up.wait(1)

    api.before_answer = interrupt

    with pytest.raises(raised, match="prod-eu-1: " if number == signal.SIGTERM else "^$"):
        run("--cluster", cluster.name, "--kubeconfig", kubeconfig)

    assert not stored(cluster)
    assert signal.getsignal(number) is before
