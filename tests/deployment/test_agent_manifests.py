"""deploy/agent gives the agent its permissions and files, as YAML or as a chart.

The chart's templates use so little of Helm's language that the lines below render them. A test
compares them with the pinned Helm; tools/live_kubernetes applies the plain files.
"""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command, load_command_class

from apikeys.models import TrustPolicy
from infra_service import __version__
from tests.apiserver import SERVER_VERSION
from tests.apiserver.requests import answered
from tests.deployment.test_container import arguments
from tests.support.helm import HELM, needs_helm
from tests.support.installation import ROOT
from tests.support.issuer import Key
from tests.support.schemas import violations
from tools.live_kubernetes.access import rights
from workloads.management.reporting import reporting_target

AGENT = ROOT / "deploy" / "agent"
CHART = AGENT / "chart"
TEMPLATES = sorted((CHART / "templates").glob("*"))
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
#: The content of the plain files.
PLAIN = {
    "image": f"registry.example.com/infra-service-agent:{__version__}",
    "url": "https://infra.example.com",
    "cluster": "01a1fd68-ca28-7587-abb0-61c48a8a8478",
    "trustPolicy": "fed-06kcl4xq7sz8v1",
    "audience": "https://infra.example.com",
}
WITH_TOKEN = {**PLAIN, "trustPolicy": "", "audience": "", "tokenSecret": "infra-agent-token"}
PRIVATE = {**PLAIN, "caConfigMap": "infra-ca", "interval": 30}
PLACED = {
    **PLAIN,
    "fullnameOverride": "agent-of-prod",
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"kubernetes.io/os": "linux", "dedicated": "true"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "labels": {"team": "platform", "cost-centre": "0042"},
    "annotations": {"example.com/owner": "platform: 1", "cluster-autoscaler/safe-to-evict": "true"},
}
GIVEN = [PLAIN, WITH_TOKEN, PRIVATE, {**WITH_TOKEN, **PRIVATE}, PLACED]


def test_images_have_the_tag_of_the_release() -> None:
    texts = [
        path.read_text()
        for folder in ("docs", "deploy")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".md", ".yaml"} and "adr" not in path.parts
    ]

    tags = {
        tag for text in texts for tag in re.findall(r"infra-service(?:-agent)?:(\d[\w.]*)", text)
    }
    assert tags == {__version__}
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == __version__


def rendered(text: str, values: dict[str, Any]) -> str:
    """Render values, and conditions that have separate lines and are not nested."""
    taken: list[bool] = []
    lines = []
    for line in text.splitlines():
        action = re.fullmatch(r"\s*\{\{- (if \.Values\.(\w+)|else|end) \}\}", line)
        if action is None:
            if all(taken):
                lines.append(_with_values(line, values))
        elif action[2]:
            assert not taken, "a condition in a condition"
            taken.append(bool(values[action[2]]))
        elif action[1] == "else":
            taken.append(not taken.pop())
        else:
            taken.pop()
    assert not taken
    text = "\n".join(lines)
    assert "{{" not in text
    return text


def _with_values(line: str, values: dict[str, Any]) -> str:
    if block := re.fullmatch(r"\s*\{\{- toYaml \.Values\.(\w+) \| nindent (\d+) \}\}", line):
        return textwrap.indent(yaml.safe_dump(values[block[1]]), " " * int(block[2]))
    default = r"\{\{ default \.([\w.]+) \.([\w.]+) \}\}"
    line = re.sub(default, lambda m: value(m[2], values) or value(m[1], values), line)
    return re.sub(r"\{\{ \.([\w.]+) \}\}", lambda m: value(m[1], values), line)


def value(path: str, values: dict[str, Any]) -> str:
    release = {"Namespace": "infra-agent", "Name": "infra-agent"}
    found: Any = {"Values": values, "Release": release}
    for name in path.split("."):
        found = found[name]
    return str(found)


def chart(given: dict[str, Any]) -> list[dict[str, Any]]:
    values = {**VALUES, **given}
    assert violations(values, SCHEMA) == []
    texts = (rendered(path.read_text(), values) for path in TEMPLATES)
    return [document for text in texts for document in yaml.safe_load_all(text)]


def plain() -> list[dict[str, Any]]:
    texts = (path.read_text() for path in sorted(AGENT.glob("*.yaml")))
    return [document for text in texts for document in yaml.safe_load_all(text)]


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


def pod(documents: list[dict[str, Any]]) -> Any:
    return of_kind(documents, "Deployment")["spec"]["template"]["spec"]


@pytest.mark.slow
def test_chart_equals_the_plain_manifests() -> None:
    """Except for the namespace, which `helm install --create-namespace` creates."""
    assert [path.name for path in TEMPLATES] == ["account.yaml", "agent.yaml"]
    assert chart(PLAIN) == [entry for entry in plain() if entry["kind"] != "Namespace"]


@needs_helm
@pytest.mark.parametrize("given", GIVEN)
def test_helm_renders_the_same_manifests(given: dict[str, Any], tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps(given))
    command = (HELM, "template", "infra-agent", CHART, "--namespace", "infra-agent")

    linted = subprocess.run(
        [HELM, "lint", "--strict", CHART, "--values", values], check=False, capture_output=True
    )
    rendered_by_helm = subprocess.run(
        [*command, "--values", values], check=True, capture_output=True
    )

    assert linted.returncode == 0, linted.stdout
    found = list(yaml.safe_load_all(rendered_by_helm.stdout))
    assert sorted(found, key=_kind) == sorted(chart(given), key=_kind)


@needs_helm
def test_openshift_can_assign_the_user(tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    nothing = dict.fromkeys(VALUES["podSecurityContext"])
    values.write_text(json.dumps({**PLAIN, "podSecurityContext": nothing}))
    command = (HELM, "template", "infra-agent", CHART, "--values", values)

    found = subprocess.run(command, check=True, capture_output=True).stdout

    context = pod(list(yaml.safe_load_all(found)))["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def _kind(document: dict[str, Any]) -> str:
    kind: str = document["kind"]
    return kind


def test_pod_has_the_configured_placement_and_names() -> None:
    documents = chart(PLACED)
    deployment = of_kind(documents, "Deployment")
    template = deployment["spec"]["template"]

    names = {document["metadata"]["name"] for document in documents}
    assert names == {"agent-of-prod"}
    for name in ("imagePullSecrets", "nodeSelector", "tolerations"):
        assert template["spec"][name] == PLACED[name]
    own = {"app.kubernetes.io/name": "agent-of-prod"}
    assert deployment["spec"]["selector"]["matchLabels"] == own
    for metadata in (deployment["metadata"], template["metadata"]):
        assert metadata["labels"] == {**own, **PLACED["labels"]}
        assert metadata["annotations"] == PLACED["annotations"]


def test_the_probe_reads_the_heartbeat(tmp_path: Path) -> None:
    (container,) = pod(plain())["containers"]
    (file,) = [a.partition("=")[2] for a in container["args"] if a.startswith("--heartbeat-file=")]
    cache = [m["mountPath"] for m in container["volumeMounts"] if m["name"] == "cache"]
    shell, flag, probe = container["livenessProbe"]["exec"]["command"]
    here = tmp_path / "heartbeat"

    assert str(Path(file).parent) in cache
    assert file in probe
    command = [shell, flag, probe.replace(file, str(here))]
    assert subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 1
    here.touch()
    assert subprocess.run(command, check=False).returncode == 0


def test_values_that_look_like_numbers_stay_texts() -> None:
    """A cluster would refuse numbers."""
    odd = pod(chart({**PLAIN, "image": "1.10", "audience": "12345", "caConfigMap": "1000"}))
    secret = pod(chart({**WITH_TOKEN, "tokenSecret": "007"}))

    identity, _cache, authorities = odd["volumes"]
    assert odd["containers"][0]["image"] == "1.10"
    assert identity["projected"]["sources"][0]["serviceAccountToken"]["audience"] == "12345"
    assert authorities["configMap"]["name"] == "1000"
    assert secret["volumes"][0]["secret"]["secretName"] == "007"


def test_role_allows_exactly_the_requests_of_the_collector() -> None:
    """The table of requests lists its requests; the recorded server enforces the table."""
    requested = set()
    for request in answered():
        path, _, query = request.partition("?")
        if path == SERVER_VERSION:  # which Kubernetes lets every account read
            continue
        place, watch = path.replace("/namespaces/{namespace}", ""), query.startswith("allowWatch")
        api, _, resource = place.rpartition("/")
        group = "" if api.startswith("/api/v1") else api.split("/")[2]
        if resource == "kube-system":
            requested.add((group, "namespaces", "kube-system", "get"))
        else:
            requested.add((group, resource, "", "watch" if watch else "list"))
    role = of_kind(plain(), "ClusterRole")
    collectors = (ROOT / "docs" / "how-to" / "collector-rbac.yaml").read_text()

    assert rights(role["rules"]) == requested
    assert role["rules"] == of_kind(list(yaml.safe_load_all(collectors)), "ClusterRole")["rules"]


@pytest.mark.parametrize("source", [plain, partial(chart, PLAIN)], ids=["plain", "chart"])
def test_the_account_has_the_role(source: Callable[[], list[dict[str, Any]]]) -> None:
    documents = source()
    account, binding = (
        of_kind(documents, "ServiceAccount"),
        of_kind(documents, "ClusterRoleBinding"),
    )

    assert binding["roleRef"]["name"] == of_kind(documents, "ClusterRole")["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert subject == {"kind": "ServiceAccount", **account["metadata"]}
    assert pod(documents)["serviceAccountName"] == account["metadata"]["name"]
    assert {d["metadata"].get("namespace", "infra-agent") for d in documents} == {"infra-agent"}


@pytest.mark.parametrize("given", GIVEN)
def test_the_pod_has_no_more_than_it_needs(given: dict[str, Any]) -> None:
    """The restricted level of Kubernetes' pod security standards, and a read-only root."""
    spec = pod(chart(given))
    (container,) = spec["containers"]
    (user,) = arguments("USER", -2)

    assert spec["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": int(user), "runAsGroup": int(user),
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert set(container["resources"]["limits"]) == {"memory"}
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert "env" not in container
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    kinds = [set(volume) - {"name"} for volume in spec["volumes"]]
    assert set().union(*kinds) <= {"projected", "secret", "emptyDir", "configMap"}
    writable = [m["name"] for m in container["volumeMounts"] if not m.get("readOnly")]
    assert writable == ["cache"]


@pytest.mark.parametrize("given", GIVEN)
def test_the_command_takes_the_arguments(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = pod(chart(given))
    (container,) = spec["containers"]
    _python, _manage, name, *fixed = json.loads(arguments("ENTRYPOINT", -2)[0])
    parser = load_command_class("workloads", name).create_parser("manage.py", name)

    options = vars(parser.parse_args([*fixed, *container["args"]]))

    assert (options["in_cluster"], options["watch"]) == (True, True)
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    files = {k: v for k, v in options.items() if k.endswith(("_file", "_cache")) and v}
    assert {str(Path(file).parent) for file in files.values()} == set(mounts.values())
    # In a pod, Kubernetes mounts the account and the certificate authorities.
    client = object()
    monkeypatch.setattr("workloads.collector.connect.in_cluster", lambda: client)
    target = reporting_target({**options, "ca_file": None}, "1")
    assert (target.name, target.client) == (PLAIN["cluster"], client)


def test_the_pods_token_is_for_the_issuers_audience_alone() -> None:
    (identity,) = [volume for volume in pod(plain())["volumes"] if volume["name"] == "identity"]

    (source,) = identity["projected"]["sources"]
    assert source["serviceAccountToken"] == {
        "path": "token", "audience": "https://infra.example.com", "expirationSeconds": 600,
    }  # fmt: skip


@pytest.mark.parametrize("given", [
    {},
    {**PLAIN, "image": ""},
    {**PLAIN, "url": "http://infra.example.com"},
    {**PLAIN, "cluster": "prod-eu-1"},
    {**PLAIN, "trustPolicy": ""},
    {**PLAIN, "audience": ""},
    {**PLAIN, "interval": 0},
    {**PLAIN, "replicas": 2},
    {**PLAIN, "trustpolicy": "fed-1"},
    {**PLAIN, "fullnameOverride": "Not_A_Name"},
    {**PLAIN, "labels": {"app.kubernetes.io/name": "other"}},
    {**PLAIN, "nodeSelector": {"gpu": True}},
])  # fmt: skip
def test_invalid_chart_values_are_refused(given: dict[str, Any]) -> None:
    assert violations({**VALUES, **given}, SCHEMA)


def test_the_how_to_has_a_policy_for_this_account(tmp_path: Path, db: None) -> None:
    how_to = (ROOT / "docs" / "how-to" / "install-the-agent.md").read_text()
    (text,) = re.findall(r"^```toml\n(.+?)^```", how_to, re.MULTILINE | re.DOTALL)
    (tmp_path / "trust.toml").write_text(text)
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [Key().public]}))

    call_command("trust", "--file", str(tmp_path / "trust.toml"), "--create-users", verbosity=0)

    policy = TrustPolicy.objects.get()
    account = of_kind(plain(), "ServiceAccount")["metadata"]
    equal = {condition["claim"]: condition["equals"] for condition in policy.conditions}
    assert equal["/kubernetes.io/namespace"] == account["namespace"]
    assert equal["/kubernetes.io/serviceaccount/name"] == account["name"]
    assert (policy.scopes, str(policy.bound_cluster_id)) == (["cluster:report"], PLAIN["cluster"])
    assert policy.issuer.audience == PLAIN["audience"]


def test_an_account_can_be_had_before_its_policy() -> None:
    """The policy names the account's uid."""
    first = {**PLAIN, "trustPolicy": "", "audience": "", "replicas": 0}

    assert of_kind(chart(first), "Deployment")["spec"]["replicas"] == 0
