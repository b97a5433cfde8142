"""Follow docs/how-to/install-on-kubernetes.md on a real control plane, under traffic.

Helm and kubectl run the how-to's commands. The pods are processes of this tree (`chart_pods`).
While Helm upgrades and rolls back, clients push and lock through the Service. The exit status is 0
only if no request failed, no acknowledged push is lost and no container had a fault.
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

from tests.deployment.roles import Roles
from tests.docs.walk import Walk, steps
from tests.e2e.database import snapshot
from tests.e2e.traffic import Traffic
from tests.support.helm import HELM
from tests.support.installation import ROOT
from tests.support.server import Answer
from tools.live_kubernetes.build import binaries, cache_directory
from tools.live_kubernetes.chart_pods import ChartPods, faults
from tools.live_kubernetes.kubelet import Kubelets
from tools.live_kubernetes.plane import ControlPlane, control_plane
from tools.live_kubernetes.service_proxy import ServiceProxy
from tools.upgrades.clients import Front

HOW_TO = ROOT / "docs/how-to/install-on-kubernetes.md"
UPGRADE = "\n## Upgrade and roll back\n"
HOST = "infra.example.com"
EXEC = "kubectl -n infra exec -it deployment/infra-service -- python manage.py "
ISSUE = "issue_token --user operator --name clients --scopes state:read,state:write,state:admin"


class Clients(Front):
    """Clients behind a proxy that terminates TLS."""

    def request(self, *given: Any, headers: dict[str, str] | None = None, **more: Any) -> Answer:
        """Send a request as the proxy would forward it."""
        forwarded = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
        return super().request(*given, headers={**forwarded, **(headers or {})}, **more)


def main() -> int:
    """Install, upgrade and roll back; return the exit status."""
    with (
        tempfile.TemporaryDirectory(prefix="infra-chart-") as directory,
        contextlib.closing(Roles(Path(directory))) as roles,
        control_plane(binaries(cache_directory())) as plane,
        running_pods(plane) as pods,
    ):
        home = Path(directory)
        walk = prepared(plane, roles, pods, home)
        first, second = HOW_TO.read_text().split(UPGRADE)
        done = followed(walk, home, first)
        with ServiceProxy(plane.api(), f"{pods.path}/endpoints/infra-service") as proxy:
            clients = Clients(proxy.port)
            (token,) = re.findall(r"^isp_\w+$", executed(pods, ISSUE), re.MULTILINE)
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
            wrong = [*traffic.unexpected, *faults(pods.pods), *failed(clients)]
            found = snapshot(roles.migrating, *(ledger.backend for ledger in traffic.ledgers))
            for ledger in traffic.ledgers:
                wrong += ledger.broken_promises(found)
            images = [pod.container["image"] for pod in pods.pods if pod.component == "service"]
    for (phase, status), count in sorted(clients.answers.items()):
        print(f"{phase:40} {status:20} {count:6}")
    print(f"{done} commands and files of the how-to, {traffic.acknowledged()} pushes acknowledged")
    print("instances, in the order of their start:", *images)
    print(*wrong, f"{len(wrong)} things went wrong", sep="\n")
    return 1 if wrong else 0


@contextlib.contextmanager
def running_pods(plane: ControlPlane) -> Iterator[ChartPods]:
    """Run the pods of the how-to's namespace during the block."""
    Kubelets(plane.api()).make_nodes()
    pods = ChartPods(plane, "infra")
    pods.start()
    try:
        yield pods
    finally:
        pods.stop()


def prepared(plane: ControlPlane, roles: Roles, pods: ChartPods, home: Path) -> Walk:
    """Return a walk with the programs, the cluster and the secrets of this run."""
    programs = home / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(plane.binaries.kubectl)
    (programs / "helm").symlink_to(HELM)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "KUBECONFIG": str(plane.kubeconfig(home / "kubeconfig")),
    }
    keys = {
        name: roles.serving.environment[name] for name in ("SECRET_KEY", "STATE_ENCRYPTION_KEYS")
    }
    words = {
        "deploy/chart": str(ROOT / "deploy/chart"),
        "deploy/manifests": str(ROOT / "deploy/manifests"),
        "postgres://infra_owner:…@db.example.com:5432/infra": roles.migrating.environment[
            "DATABASE_URL"
        ],
        "postgres://infra:…@db.example.com:5432/infra": roles.serving.environment["DATABASE_URL"],
        # The roles have names of their own.
        f"host: {HOST}": f"host: {HOST}\nmigrate: {{role: {roles.service}}}",
        **{f"{name}=…": f"{name}={value}" for name, value in keys.items()},
    }
    by_hand = {
        step.command: partial(executed, pods, step.command.removeprefix(EXEC))
        for step in steps(HOW_TO.read_text())
        if step.command.startswith(EXEC)
    }
    return Walk(home, environment, words, by_hand, timeout=600)


def followed(walk: Walk, home: Path, text: str) -> int:
    """Follow a part of the how-to; return the number of its files and commands."""
    part = home / HOW_TO.name
    part.write_text(text)
    return walk.through(part)


def executed(pods: ChartPods, arguments: str) -> str:
    """Run a command of the service in an instance, like `kubectl exec`; return its output."""
    instance = next(pod for pod in pods.pods if pod.component == "service")
    # Passwords need a terminal.
    interactive = ["--noinput"] if arguments.startswith("createsuperuser") else []
    command = ["python", "manage.py", *arguments.split(), *interactive]
    process = instance.execute(command, subprocess.PIPE)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, instance.log.read_text()
    return printed.decode()


def failed(clients: Clients) -> list[str]:
    """Return each broken connection and each 5xx."""
    return [
        f"{phase}: {count} times {status}"
        for (phase, status), count in clients.answers.items()
        if not status.startswith(("2", "4"))
    ]


if __name__ == "__main__":
    sys.exit(main())
