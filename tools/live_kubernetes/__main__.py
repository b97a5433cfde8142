"""``make live-kubernetes``: test the collector with a real control plane.

The exit status is 0 only if every row matched the oracle at every rest and after every fault.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.apiserver.requests import TABLE, Exchange, answered
from tests.support.server import LiveServer, live_server
from tools.live_kubernetes.access import COLLECTOR, RBAC_OF_ONE, Account, documents
from tools.live_kubernetes.agent import AGENT_FAULTS, AgentScene, compared_rights, installed
from tools.live_kubernetes.build import binaries, cache_directory
from tools.live_kubernetes.faults import FAULTS, REST, CollectorScene, Scene, SceneT, played
from tools.live_kubernetes.kubelet import Kubelets
from tools.live_kubernetes.life import Life
from tools.live_kubernetes.metrics_api import MetricsApi
from tools.live_kubernetes.plane import ControlPlane, control_plane, write_kubeconfig
from tools.live_kubernetes.probes import probe
from tools.live_kubernetes.relay import Relay
from tools.live_kubernetes.service import INTERVAL, Collected, end, wait_for

_STORM = 45.0


class Table:
    """The table of results."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int, int, float]] = []

    def add(self, name: str, count: int, found: list[str], seconds: float) -> None:
        self.lines.append((name, count, len(found), seconds))
        print(f"{name}: {count} rows, {len(found)} differ ({seconds:.0f} s)", flush=True)
        for sentence in found[:8]:
            print(f"    {sentence}", flush=True)

    def show(self) -> None:
        print(f"\n{'comparison':44} {'rows':>6} {'differ':>6} {'seconds':>8}")
        for name, count, differ, seconds in self.lines:
            print(f"{name:44} {count:6} {differ:6} {seconds:8.0f}")
        rows = sum(count for _, count, _, _ in self.lines)
        print(f"{'all':44} {rows:6} {sum(d for _, _, d, _ in self.lines):6}", flush=True)

    @property
    def is_right(self) -> bool:
        return all(count and not differ for _, count, differ, _ in self.lines)


def main() -> int:
    """Run all comparisons and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.live_kubernetes")
    parser.add_argument("--minutes", type=float, default=10, help="minutes of random changes")
    parser.add_argument("--workloads", type=int, default=60, help="workloads at the start")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        help="run only this fault (repeatable, 'none' for no fault) and do not record",
    )
    parser.add_argument(
        "--agent", action="store_true", help="test the agent in deploy/agent, and do not record"
    )
    parser.add_argument("--down", type=float, default=45, help="seconds without the API server")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    table = Table()
    with (
        tempfile.TemporaryDirectory(prefix="infra-kubernetes-") as directory,
        control_plane(binaries(cache_directory())) as plane,
        inhabited(plane, options.seed) as (life, metrics),
        live_server() as service,
    ):
        life.begin(options.workloads)
        where = (plane, life, metrics, service, Path(directory))
        print(f"Kubernetes {plane.api().get('/version')['gitVersion']}; {service.url}", flush=True)
        if options.agent:
            ended = followed_by_the_agent(installed(*where), options, table)
        else:
            ended = followed(prepared(*where), service, options, table, Path(directory))
    table.show()
    return 0 if table.is_right and ended == 0 else 1


def followed(
    scene: CollectorScene,
    service: LiveServer,
    options: argparse.Namespace,
    table: Table,
    directory: Path,
) -> int:
    """Compare the collector with the cluster, and return the collector's exit status."""
    once(scene, table)
    if not options.fault:
        one_namespace(scene, service, directory, table)
    ended = lived_through(scene, FAULTS, options, table)
    if not options.fault:
        record(scene, directory)
    return ended


def followed_by_the_agent(scene: AgentScene, options: argparse.Namespace, table: Table) -> int:
    started = time.monotonic()
    table.add("permissions of the account", *compared_rights(scene), time.monotonic() - started)
    return lived_through(scene, AGENT_FAULTS, options, table)


def lived_through(
    scene: SceneT,
    faults: Sequence[Callable[[SceneT], str]],
    options: argparse.Namespace,
    table: Table,
) -> int:
    """Run random changes and the faults, and return the collector's exit status."""
    scene.seconds_down = options.down
    storms(scene, options.minutes * 60, table)
    for fault in faults:
        if not options.fault or fault.__name__ in options.fault:
            table.add(fault.__name__.replace("_", " "), *played(fault, scene))
    ended = end(scene.collector)
    print(f"the collector exited with {ended} after {scene.life.actions} actions")
    lines = scene.collected.log.read_text(errors="replace")
    print(f"the log has {len(lines)} characters and {lines.count('Traceback')} tracebacks")
    return ended


@contextlib.contextmanager
def inhabited(plane: ControlPlane, seed: int) -> Iterator[tuple[Life, MetricsApi]]:
    """Provide a control plane with nodes, kubelets and metrics during the block."""
    kubelets = Kubelets(plane.api())
    kubelets.make_nodes()
    kubelets.start()
    metrics = MetricsApi(plane.api(), plane.directory)
    metrics.start()
    try:
        yield Life(plane.api(), kubelets, seed), metrics
    finally:
        metrics.close()
        kubelets.stop()


def prepared(
    plane: ControlPlane, life: Life, metrics: MetricsApi, service: LiveServer, directory: Path
) -> CollectorScene:
    """Register the cluster with the documented permissions, and start a collection."""
    admin = plane.api()
    COLLECTOR.grant(admin)
    token_file = directory / "token"
    token_file.write_text(COLLECTOR.token(admin))
    kubeconfig = directory / "kubeconfig"
    where = {plane.name: (plane.url, plane.certificate)}
    write_kubeconfig(kubeconfig, where, {"tokenFile": str(token_file)})
    name = plane.name
    collected = Collected(service, service.token("cluster:read", "cluster:write"), name)
    collector = collected.collect(kubeconfig, "--once", "--interval", str(INTERVAL))
    return CollectorScene(
        plane=plane, admin=admin, life=life, metrics=metrics, collected=collected,
        account=COLLECTOR, collector=collector,
        kubeconfig=kubeconfig, token_file=token_file,
    )  # fmt: skip


def once(scene: CollectorScene, table: Table) -> None:
    """Compare a snapshot of a cluster at rest, and then start to watch it."""
    started = time.monotonic()
    scene.collector.wait(120)
    scene.life.rest(12)
    again = scene.collected.collect(scene.kubeconfig, "--once").wait(120)
    count, found = scene.collected.differences(scene.admin)
    table.add("--once", count, found + ([f"the collector exited with {again}"] if again else []),
              time.monotonic() - started)  # fmt: skip
    scene.collector = scene.collected.watch(scene.kubeconfig)


def one_namespace(
    scene: CollectorScene, service: LiveServer, directory: Path, table: Table
) -> None:
    """Compare the reports of an account with permissions in a single namespace."""
    started = time.monotonic()
    namespace = "live-a"
    text = RBAC_OF_ONE.read_text().replace("shop", namespace)
    role = directory / "role.yaml"
    role.write_text(text)
    scene.admin.apply(documents(role))
    secret = Account(role, namespace, COLLECTOR.name).token(scene.admin)
    path = directory / "one.kubeconfig"
    where = {scene.plane.name: (scene.plane.url, scene.plane.certificate)}
    write_kubeconfig(path, where, {"token": secret})
    collected = Collected(service, scene.collected.token, "one-namespace")
    watching = collected.watch(path, "--namespace", namespace)
    wait_for(lambda: collected.cluster()["last_report_at"], 60)
    scene.life.go_on(15)
    scene.life.rest(REST)
    count, found = collected.differences(scene.admin, namespaces=(namespace,))
    status = end(watching)
    table.add("--namespace, with a Role", count,
              found + ([f"the collector exited with {status}"] if status else []),
              time.monotonic() - started)  # fmt: skip


def storms(scene: Scene, seconds: float, table: Table) -> None:
    """Run random changes, and compare at each rest."""
    left = seconds
    while left > 0:
        started = time.monotonic()
        storm = min(_STORM, left)
        scene.life.go_on(storm)
        left -= storm
        scene.life.rest(2 * INTERVAL + 5)
        count, found = scene.collected.differences(scene.admin)
        table.add(f"--watch, {storm:.0f} s of changes", count, found, time.monotonic() - started)


def record(scene: CollectorScene, directory: Path) -> None:
    """Record the responses to all requests of the collector, for the API server of the tests."""
    relay = Relay(scene.plane.url, scene.plane.certificate)
    relay.start()
    path = directory / "recorded.kubeconfig"
    write_kubeconfig(
        path,
        {scene.plane.name: (relay.url, scene.plane.certificate)},
        {"tokenFile": str(scene.token_file)},
    )
    for options in ((), ("--namespace", "live-a", "--namespace", "live-b")):
        scene.collected.collect(path, "--once", *options).wait(120)
        watching = scene.collected.watch(path, *options)
        # The changes continue until each watch has reached its timeout.
        scene.life.go_on(70)
        end(watching)
    relay.close()
    found: dict[str, dict[str, Exchange]] = answered() if TABLE.exists() else {}
    version = "1.20.2"
    for request, exchange in relay.seen.items():
        found.setdefault(request, {})[version] = exchange
    TABLE.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    probes = probe(scene.admin, version)
    print(f"{len(relay.seen)} kinds of request and {probes} probes written to {TABLE.parent.name}")


if __name__ == "__main__":
    sys.exit(main())
