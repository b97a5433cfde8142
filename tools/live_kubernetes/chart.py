"""Perform docs/how-to/install-on-kubernetes.md on a real control plane, under traffic.

Helm, kubectl and psql run the commands of the how-to, and a job from
docs/how-to/keyless-pipelines.md runs the real terraform. The pods are processes of this tree
(`chart_pods`). While Helm upgrades and rolls back, clients push and lock through the Service. The
exit status is 0 only if no request failed, no acknowledged push was lost and no container failed.

The how-to creates a database and roles. Run this program under `python -m tests.support.postgres`.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.docs.keyless import ADDRESS, blocks
from tests.docs.walk import Walk, steps
from tests.e2e.database import snapshot
from tests.e2e.traffic import Traffic
from tests.support import postgres
from tests.support.helm import HELM
from tests.support.installation import ROOT
from tests.support.issuer import issuer_server
from tests.support.server import Answer, LiveServer
from tools.live_kubernetes.build import binaries, cache_directory
from tools.live_kubernetes.chart_pods import ChartPods, faults
from tools.live_kubernetes.first_apply import HOST, FirstApply, without_secrets
from tools.live_kubernetes.kubelet import Kubelets
from tools.live_kubernetes.plane import ControlPlane, control_plane
from tools.live_kubernetes.service_proxy import ServiceProxy
from tools.upgrades.clients import Front

HOW_TO = ROOT / "docs/how-to/install-on-kubernetes.md"
UPGRADE, UNINSTALL = "\n## Upgrade and roll back\n", "\n## Uninstall\n"
EXEC = re.compile(r"kubectl -n infra exec \S+ deployment/infra-service -- python manage\.py (.+)")
ISSUE = "issue_token --user operator --name clients --scopes state:read,state:write,state:admin"


class Clients(Front):
    """Clients behind a proxy that terminates TLS."""

    def request(self, *given: Any, headers: dict[str, str] | None = None, **more: Any) -> Answer:
        """Send a request with the headers that the proxy would add."""
        forwarded = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
        return super().request(*given, headers={**forwarded, **(headers or {})}, **more)


def main() -> int:
    """Install, apply, upgrade, roll back and uninstall, and return the exit status."""
    with (
        # Not in /tmp, because pods have their own /tmp, and `trust` reads the issuer's CA in a pod.
        tempfile.TemporaryDirectory(prefix="infra-chart-", dir="/var/tmp") as directory,
        issuer_server(Path(directory)) as issuer,
        control_plane(binaries(cache_directory())) as plane,
        running_pods(plane) as pods,
        ServiceProxy(plane.api(), f"{pods.path}/endpoints/infra-service") as proxy,
    ):
        home = Path(directory)
        apply = FirstApply(issuer, home)
        walk = prepared(plane, pods, apply)
        first, rest = HOW_TO.read_text().split(UPGRADE)
        second, third = rest.split(UNINSTALL)
        (home / "trust.toml").write_text(apply.jobs.on_loopback(blocks("toml")[0]))
        done = followed(walk, home, first)
        walk.transcript += apply.run(proxy.port, walk.transcript)
        owner = migrating(home)
        clients = Clients(proxy.port)
        (token,) = re.findall(r"^isp_\w+$", executed(pods, home, ISSUE), re.MULTILINE)
        traffic = Traffic(clients, token)
        clients.phase = "installed"
        time.sleep(3)
        traffic.start()
        time.sleep(10)
        values = home / "values.yaml"
        values.write_text(values.read_text().replace(":1.0.0", ":1.0.1"))
        clients.phase = "upgraded and rolled back"
        done += followed(walk, home, second)
        clients.phase = "afterwards"
        time.sleep(5)
        traffic.stop()
        wrong = [*traffic.unexpected, *failed(clients)]
        found = snapshot(owner, *(ledger.backend for ledger in traffic.ledgers))
        for ledger in traffic.ledgers:
            wrong += ledger.broken_promises(found)
        done += followed(walk, home, third)
        wrong += faults(pods.pods)
        images = [pod.container["image"] for pod in pods.pods if pod.component == "service"]
    print(*without_secrets(walk.transcript), sep="\n")
    for (phase, status), count in sorted(clients.answers.items()):
        print(f"{phase:40} {status:20} {count:6}")
    print(f"{done} commands and files of the how-to, {traffic.acknowledged()} acknowledged pushes")
    print("images of the instances, in the order of their start:", *images)
    print("pods:", *sorted({pod.component for pod in pods.pods}))
    print(*wrong, f"{len(wrong)} problems", sep="\n")
    return 1 if wrong else 0


@contextlib.contextmanager
def running_pods(plane: ControlPlane) -> Iterator[ChartPods]:
    """Run the pods in the namespace of the how-to during the block."""
    Kubelets(plane.api()).make_nodes()
    pods = ChartPods(plane, "infra")
    pods.start()
    try:
        yield pods
    finally:
        pods.stop()


def prepared(plane: ControlPlane, pods: ChartPods, apply: FirstApply) -> Walk:
    """Return a walk through the how-to with the programs and the addresses of this run."""
    home = apply.home
    programs = home / "bin"
    programs.mkdir()
    psql = postgres.binaries(home) / "psql"
    for name, program in (("kubectl", plane.binaries.kubectl), ("helm", HELM), ("psql", psql)):
        (programs / name).symlink_to(program)
    for name in ("deploy", "docs"):
        (home / name).symlink_to(ROOT / name)
    superuser = os.environ["DATABASE_URL"]
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "KUBECONFIG": str(plane.kubeconfig(home / "kubeconfig")),
        "SUPERUSER_URL": superuser,
    }
    server = superuser.rpartition("@")[2].partition("/")[0]
    words = {
        ADDRESS: apply.url,
        # The issuer and the proxy are on loopback, and the service has no name on this machine.
        "host: infra.example.com": f"host: {HOST}\nsettings: {{ISSUER_NETWORKS: 127.0.0.0/8}}",
        "infra.example.com": HOST,
        "db.example.com:5432": server,
    }
    commands = [step.command for step in steps(HOW_TO.read_text())]
    by_hand = {
        command: partial(executed, pods, home, found[1])
        for command in commands
        if (found := EXEC.fullmatch(command))
    }
    no_engine = {
        c: partial(str, "(not run: no container engine)") for c in commands if "docker" in c
    }
    return Walk(home, environment, words, {**by_hand, **no_engine}, timeout=600)


def migrating(home: Path) -> LiveServer:
    """Return an installation with the owner's role, configured from the Secrets in the how-to."""
    _namespace, service, owner = yaml.safe_load_all((home / "secrets.yaml").read_text())
    (home / "owner").mkdir()
    return LiveServer(home / "owner", **service["stringData"] | owner["stringData"])


def followed(walk: Walk, home: Path, text: str) -> int:
    """Perform a part of the how-to, and return the number of its files and commands."""
    part = home / HOW_TO.name
    part.write_text(text)
    return walk.through(part)


def executed(pods: ChartPods, home: Path, arguments: str) -> str:
    """Run a command of the service in an instance, like `kubectl exec`. Return its output."""
    arguments, _, file = arguments.partition(" <")
    instance = next(pod for pod in pods.pods if pod.component == "service")
    command = ["python", "manage.py", *arguments.split()]
    with (home / file if file else Path(os.devnull)).open("rb") as given:
        process = instance.execute(command, subprocess.PIPE, given)
        printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed.decode()
    return printed.decode()


def failed(clients: Clients) -> list[str]:
    """Return the broken connections and the 5xx responses."""
    return [
        f"{phase}: {count} times {status}"
        for (phase, status), count in clients.answers.items()
        if not status.startswith(("2", "4"))
    ]


if __name__ == "__main__":
    sys.exit(main())
