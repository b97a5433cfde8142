"""Test the agent, installed according to docs/how-to/install-the-agent.md.

kubectl applies the files in deploy/agent, the trust policy comes from the how-to, and the API
server signs the tokens that the service exchanges. Only the kubelet is simulated, without an image
(see `agent_pods`).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tools.live_kubernetes.access import AGENT, Account, documents, reviewed, rights
from tools.live_kubernetes.agent_pods import AgentPods
from tools.live_kubernetes.faults import (
    CHURN,
    Scene,
    api_server_stopped,
    etcd_compacted,
    metrics_hang,
    permissions_removed,
)
from tools.live_kubernetes.life import Life
from tools.live_kubernetes.metrics_api import MetricsApi
from tools.live_kubernetes.plane import ControlPlane
from tools.live_kubernetes.service import INTERVAL, Collected, wait_for

HOW_TO = ROOT / "docs/how-to/install-the-agent.md"
DEPLOYMENT = ROOT / "deploy/agent/agent.yaml"
_DEPLOYMENT = "/apis/apps/v1/namespaces/infra-agent/deployments/infra-agent"
_BASE = "https://infra.example.com"
# The maximum seconds until a report, including a restart of the agent and retries.
_MAX_WAIT = 60


@dataclass(kw_only=True)
class AgentScene(Scene):
    """A scene with an agent in pods as the collector."""

    collector: AgentPods
    service: LiveServer
    directory: Path

    def restart(self) -> bool:
        """Delete the pods, and return whether their replacements report."""
        before = self.collector.names
        for name in before:
            self.admin.delete(f"/api/v1/namespaces/{self.account.namespace}/pods/{name}")
        return wait_for(lambda: not set(before) & set(self.collector.names), _MAX_WAIT) and (
            self.reports()
        )

    def reports(self) -> bool:
        """Return whether a new report arrives."""
        last = self.collected.cluster()["last_report_at"]
        return wait_for(lambda: self.collected.cluster()["last_report_at"] != last, _MAX_WAIT)


def installed(
    plane: ControlPlane, life: Life, metrics: MetricsApi, service: LiveServer, directory: Path
) -> AgentScene:
    """Perform the steps of the how-to, and wait for the first report."""
    collected = Collected(service, service.token("cluster:read", "cluster:write"), plane.name)
    _apply(plane, AGENT.manifest)
    policy = trusted(plane, service, collected.cluster_id, directory)
    pods = AgentPods(plane, AGENT, collected.log)
    scene = AgentScene(
        plane=plane, admin=plane.api(), life=life, metrics=metrics, collected=collected,
        account=AGENT, collector=pods, service=service, directory=directory,
    )  # fmt: skip
    text = DEPLOYMENT.read_text()
    for printed, ours in (
        (f"--report-to={_BASE}", f"--report-to={service.url}"),
        ("--interval=60", f"--interval={INTERVAL}"),
        ("fed-06kcl4xq7sz8v1", policy),
        (_printed_cluster(text), collected.cluster_id),
    ):
        assert printed in text
        text = text.replace(printed, ours)
    manifest = directory / "agent.yaml"
    manifest.write_text(text)
    _apply(plane, manifest)
    pods.start()
    assert scene.reports(), collected.log.read_text()
    return scene


def trusted(plane: ControlPlane, service: LiveServer, cluster_id: str, directory: Path) -> str:
    """Create the trust policy in the how-to for the account, and return the policy's id."""
    admin = plane.api()
    (text,) = re.findall(r"^```toml\n(.+?)^```", HOW_TO.read_text(), re.MULTILINE | re.DOTALL)
    text = text.replace(_printed_cluster(text), cluster_id)
    for pattern, value in (
        (r'(?<=^url = ").+(?="$)', admin.get("/.well-known/openid-configuration")["issuer"]),
        (r'(?<=uid", equals = ").+?(?=")', admin.get(AGENT.path)["metadata"]["uid"]),
    ):
        text, count = re.subn(pattern, value, text, flags=re.MULTILINE)
        assert count == 1, pattern
    (directory / "keys.json").write_text(json.dumps(admin.get("/openid/v1/jwks", accept="*/*")))
    (directory / "trust.toml").write_text(text)
    printed = service.manage(
        "trust", "--file", str(directory / "trust.toml"), "--create-users", "--json"
    )
    policy: str = json.loads(printed)["trust_policies"][0]["id"]
    return policy


def compared_rights(scene: Scene) -> tuple[int, list[str]]:
    """Return the number of permissions in the role, and the deviations of the account from them."""
    unprivileged = Account(AGENT.manifest, AGENT.namespace, "nobody")
    metadata = {"name": unprivileged.name, "namespace": unprivileged.namespace}
    scene.admin.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}])
    may, everybody = (
        reviewed(scene.plane.api(account.token(scene.admin)), "live-a")
        for account in (AGENT, unprivileged)
    )
    (role,) = [d for d in documents(AGENT.manifest) if d["kind"] == "ClusterRole"]
    expected = rights(role["rules"])
    found = [f"may not {right}" for right in expected - may]
    found += [f"may {right}" for right in may - everybody - expected]
    return len(expected), found


def service_away(scene: AgentScene) -> str:
    """Stop the service. The first report after its restart must contain all changes."""
    scene.service.stop()
    scene.life.go_on(30)
    scene.service.start()
    return "" if scene.reports() else "no report arrived after the restart of the service"


def pod_deleted(scene: AgentScene) -> str:
    """Delete the pod. A new pod must start and report with new tokens."""
    restarted = scene.restart()
    scene.life.go_on(CHURN)
    ended = scene.collector.ended
    return (
        ""
        if restarted and not any(ended)
        else f"the new pod reports: {restarted}, the old pod exited with {ended}"
    )


def two_pods(scene: AgentScene) -> str:
    scene.admin.patch(_DEPLOYMENT, {"spec": {"replicas": 2}})
    both = wait_for(lambda: len(scene.collector.names) == 2, _MAX_WAIT)
    scene.life.go_on(40)
    scene.life.rest(15)
    count, found = scene.collected.differences(scene.admin)
    scene.admin.patch(_DEPLOYMENT, {"spec": {"replicas": 1}})
    one = wait_for(lambda: len(scene.collector.names) == 1, _MAX_WAIT)
    return "" if count and not found and both and one else f"{both}, {one}: {found[:3]}"


def account_made_anew(scene: AgentScene) -> str:
    """Recreate the account. The service must reject the new uid until the policy contains it."""
    scene.account.make_anew(scene.admin)
    restarted = scene.restart()
    is_refused = "400 invalid_grant" in scene.collected.log.read_text()
    trusted(scene.plane, scene.service, scene.collected.cluster_id, scene.directory)
    reports_again = scene.reports()
    scene.life.go_on(CHURN)
    right = is_refused and reports_again and not restarted
    return (
        ""
        if right
        else f"reported: {restarted}, rejected: {is_refused}, reports again: {reports_again}"
    )


AGENT_FAULTS: tuple[Callable[[AgentScene], str], ...] = (
    api_server_stopped,
    etcd_compacted,
    permissions_removed,
    metrics_hang,
    service_away,
    pod_deleted,
    two_pods,
    account_made_anew,
)


def _printed_cluster(text: str) -> str:
    (found,) = set(re.findall(r"01a1fd68-[0-9a-f-]{27}", text))
    return found


def _apply(plane: ControlPlane, manifest: Path) -> None:
    kubeconfig = plane.kubeconfig(plane.directory / "admin.kubeconfig")
    kubectl = [str(plane.binaries.kubectl), "--kubeconfig", str(kubeconfig)]
    subprocess.run([*kubectl, "apply", "-f", str(manifest)], check=True)
