"""Faults around a cluster while a collector watches it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import urllib3

from tools.live_kubernetes.access import Account
from tools.live_kubernetes.api import Api
from tools.live_kubernetes.life import Life
from tools.live_kubernetes.metrics_api import MetricsApi
from tools.live_kubernetes.plane import ControlPlane, write_kubeconfig
from tools.live_kubernetes.relay import Relay
from tools.live_kubernetes.service import USAGE, Collected, Process, end, wait_for

#: The seconds until a collector has recovered: a watch lasts at most a minute, a pause half a
#: minute.
REST = 40.0
CHURN = 12.0
SceneT = TypeVar("SceneT", bound="Scene")


@dataclass(kw_only=True)
class Scene:
    """A cluster with random changes, the service that receives reports, and the collector."""

    plane: ControlPlane
    admin: Api
    life: Life
    metrics: MetricsApi
    collected: Collected
    account: Account
    collector: Process
    seconds_down: float = 45.0

    def collection(self) -> Any:
        return self.collected.cluster()["collection"]

    def is_failing(self, reason: str) -> bool:
        found = self.collection()
        return bool(found["status"] == "FAILING" and found["last_error_reason"] == reason)


@dataclass(kw_only=True)
class CollectorScene(Scene):
    """A scene with `sync_workloads`, the database and a kubeconfig as the collector."""

    collector: subprocess.Popen[bytes]
    kubeconfig: Path
    token_file: Path


def api_server_stopped(scene: Scene) -> str:
    scene.plane.stop("apiserver")
    failing = wait_for(lambda: scene.is_failing("UNREACHABLE"), scene.seconds_down)
    scene.plane.start_api_server()
    scene.life.go_on(CHURN)
    return "" if failing else "the collection status did not contain UNREACHABLE"


def etcd_compacted(scene: Scene) -> str:
    """Compact the history that the watches need, while the collector is suspended."""
    scene.collector.send_signal(signal.SIGSTOP)
    scene.life.go_on(CHURN)
    etcd = f"http://127.0.0.1:{scene.plane.etcd_port}/v3/kv"
    revision = urllib3.request("POST", f"{etcd}/range", json={"key": "Lw=="}).json()
    compaction = {"revision": revision["header"]["revision"], "physical": True}
    urllib3.request("POST", f"{etcd}/compaction", json=compaction)
    scene.plane.stop("apiserver")
    scene.plane.start_api_server()
    scene.collector.send_signal(signal.SIGCONT)
    scene.life.go_on(CHURN)
    return ""


def token_replaced(scene: CollectorScene) -> str:
    """Recreate the account, which invalidates the old token, and write a new token."""
    scene.account.make_anew(scene.admin)
    scene.token_file.write_text(scene.account.token(scene.admin) + "\n")
    scene.life.go_on(60)
    return ""


def permissions_removed(scene: Scene) -> str:
    scene.account.withdraw(scene.admin)
    failing = wait_for(lambda: scene.is_failing("FORBIDDEN"), 100)
    scene.life.go_on(CHURN)
    scene.account.grant(scene.admin)
    scene.life.go_on(CHURN)
    return "" if failing else "the collection status did not contain FORBIDDEN"


def metrics_hang(scene: Scene) -> str:
    """Make the metrics API hang. Health must stay correct, and usage must recover."""
    scene.metrics.hang.set()
    scene.life.go_on(CHURN)
    scene.life.rest(15)
    count, found = scene.collected.differences(scene.admin, without=USAGE)
    scene.metrics.hang.clear()
    scene.life.go_on(CHURN)
    return "" if count and not found else f"while the metrics API hung: {found[:3]}"


def two_collectors(scene: CollectorScene) -> str:
    other = scene.collected.watch(scene.kubeconfig)
    scene.life.go_on(40)
    scene.life.rest(15)
    count, found = scene.collected.differences(scene.admin)
    status = end(other)
    return "" if count and not found and status == 0 else f"with both ({status}): {found[:3]}"


def half_open_connection(scene: CollectorScene) -> str:
    """Freeze all connections of a collector silently, through a relay."""
    relay = Relay(scene.plane.url, scene.plane.certificate)
    relay.start()
    path = scene.kubeconfig.with_name("relay.kubeconfig")
    write_kubeconfig(
        path, {"live": (relay.url, scene.plane.certificate)}, {"tokenFile": str(scene.token_file)}
    )
    end(scene.collector)
    scene.collector = scene.collected.watch(path)
    try:
        scene.life.go_on(30)
        relay.freeze()
        scene.life.go_on(CHURN)
        scene.life.rest(85)
        count, found = scene.collected.differences(scene.admin)
    finally:
        status = end(scene.collector)
        relay.close()
        scene.collector = scene.collected.watch(scene.kubeconfig)
    return "" if count and not found and status == 0 else f"after the freeze: {found[:3]}"


def one_of_two_ends(scene: CollectorScene) -> str:
    """Delete one of two clusters under --all --watch. The other cluster must not be affected."""
    end(scene.collector)
    name = scene.collected.name
    second = Collected(scene.collected.service, scene.collected.token, f"{name}-second")
    where = scene.plane.url, scene.plane.certificate
    path = scene.kubeconfig.with_name("two.kubeconfig")
    write_kubeconfig(path, {name: where, second.name: where}, {"tokenFile": str(scene.token_file)})
    both = scene.collected.watch(path, "--all")
    try:
        started = wait_for(lambda: second.cluster()["last_report_at"], 60)
        second.unregister()
        scene.life.go_on(CHURN)
        scene.life.rest(20)
        count, found = scene.collected.differences(scene.admin)
        alone = both.poll() is None
    finally:
        status = end(both)
        scene.collector = scene.collected.watch(scene.kubeconfig)
    right = started and alone and status == 0 and count and not found
    return "" if right else f"started {started}, continued {alone}, status {status}: {found[:3]}"


FAULTS: tuple[Callable[[CollectorScene], str], ...] = (
    api_server_stopped,
    etcd_compacted,
    token_replaced,
    permissions_removed,
    metrics_hang,
    two_collectors,
    half_open_connection,
    one_of_two_ends,
)


def played(fault: Callable[[SceneT], str], scene: SceneT) -> tuple[int, list[str], float]:
    """Run a fault. Return the number of compared rows, the differences and the seconds."""
    started = time.monotonic()
    text = fault(scene)
    scene.life.rest(REST)
    count, found = scene.collected.differences(scene.admin)
    if text:
        found.insert(0, text)
    if scene.collector.poll() is not None:
        found.insert(0, f"the collector exited with {scene.collector.poll()}")
    return count, found, time.monotonic() - started
