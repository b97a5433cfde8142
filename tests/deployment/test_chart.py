"""deploy/chart, rendered by Helm for the five files of values in its examples."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from django.core.management import load_command_class

from infra_service import gunicorn
from infra_service.settings import SECURE_REDIRECT_EXEMPT
from tests.deployment.chart import (
    CHART,
    LARGE,
    NAME,
    container,
    each_example,
    objects,
    pods,
    rendered,
    selected,
    settings,
)
from tests.deployment.test_container import COMPOSE, arguments
from tests.support.helm import needs_helm
from tests.support.installation import ROOT, Installation

HOW_TO = ROOT / "docs" / "how-to"


@needs_helm
@each_example
def test_each_pod_is_restricted(values: Path) -> None:
    """The restricted level of the Pod Security Standards, and a read-only root file system."""
    (user,) = arguments("USER")
    for component, pod in pods(rendered(values)).items():
        spec, process = pod["spec"], container(pod)
        assert spec["securityContext"] == {
            "runAsNonRoot": True, "runAsUser": int(user), "runAsGroup": int(user),
            "fsGroup": int(user), "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip
        assert process["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert spec["automountServiceAccountToken"] is False
        kinds = {kind for volume in spec["volumes"] for kind in set(volume) - {"name"}}
        assert kinds <= {"emptyDir", "configMap", "persistentVolumeClaim"}
        writable = [m["mountPath"] for m in process["volumeMounts"] if not m.get("readOnly")]
        assert settings(pod)["VAR_DIR"] in writable
        archives = values == LARGE and component == "archive"
        assert set(writable) - {"/tmp"} == {
            "/run/infra-service", *(["/var/lib/infra-archive"] if archives else [])
        }  # fmt: skip
        assert "memory" in process["resources"]["limits"]


@needs_helm
@each_example
def test_only_migrations_and_archive_receive_the_owners_role(values: Path) -> None:
    for component, pod in pods(rendered(values)).items():
        keys = [e["valueFrom"] for e in container(pod)["env"] if "valueFrom" in e]
        owner = component in ("migrate", "archive")
        assert keys == [
            {"secretKeyRef": {
                "name": "infra-owner" if owner else "infra-service", "key": "DATABASE_URL",
            }}
        ]  # fmt: skip
        assert container(pod)["envFrom"] == [{"secretRef": {"name": "infra-service"}}]


@needs_helm
@each_example
def test_selectors_reach_exactly_their_pods(values: Path) -> None:
    documents = rendered(values)
    deployments = objects(documents, "Deployment")

    for name, deployment in deployments.items():
        component = name.removeprefix(f"{NAME}-") if name != NAME else "service"
        labels = deployment["spec"]["selector"]["matchLabels"]
        assert selected(labels, documents) == {component}
        spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert [s["topologyKey"] for s in spread] == [
            "topology.kubernetes.io/zone", "kubernetes.io/hostname"
        ]  # fmt: skip
        assert all(s["labelSelector"]["matchLabels"] == labels for s in spread)
    service = objects(documents, "Service")[NAME]["spec"]
    budget = objects(documents, "PodDisruptionBudget")[NAME]["spec"]
    assert selected(service["selector"], documents) == {"service"}
    assert selected(budget["selector"]["matchLabels"], documents) == {"service"}
    assert budget["maxUnavailable"] == 1


@needs_helm
@each_example
def test_probes_and_shutdown_fit_the_service(values: Path) -> None:
    found = pods(rendered(values))
    process = container(found.pop("service"))
    found.pop("migrate")

    assert settings({"spec": {"containers": [process]}})["BIND"] == "0.0.0.0:8000"
    assert process["ports"] == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]
    paths = {n: process[f"{n}Probe"]["httpGet"] for n in ("startup", "liveness", "readiness")}
    assert {n: p["path"] for n, p in paths.items()} == {
        "startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz",
    }  # fmt: skip
    # A probe speaks plain HTTP, also with SECURE_SSL_REDIRECT.
    assert all(re.match(SECURE_REDIRECT_EXEMPT[0], p["path"][1:]) for p in paths.values())
    for pod in found.values():
        check = container(pod)["livenessProbe"]["exec"]["command"]
        *_, option = container(pod)["command"]
        assert option.removeprefix("--heartbeat-file=") in check[-1]
        assert check[-1] == COMPOSE["services"]["index"]["healthcheck"]["test"][1].replace(
            "$$", "$"
        )


@needs_helm
@each_example
def test_the_delay_before_the_shutdown_leaves_time_for_requests(values: Path) -> None:
    pod = pods(rendered(values))["service"]
    program, seconds = container(pod)["lifecycle"]["preStop"]["exec"]["command"]

    assert program == "sleep"
    assert int(seconds) + gunicorn.graceful_timeout < pod["spec"]["terminationGracePeriodSeconds"]


@needs_helm
@each_example
def test_the_commands_exist_and_the_migrations_run_first(values: Path) -> None:
    documents = rendered(values)
    found = pods(documents)

    (job,) = objects(documents, "Job").values()
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert container(found.pop("migrate"))["command"] == COMPOSE["services"]["migrate"]["command"]
    assert "command" not in container(found.pop("service"))
    apps = {"index_states": "states"}
    for pod in found.values():
        _python, _manage, name, *given = container(pod)["command"]
        parser = load_command_class(apps.get(name, "infra_service"), name).create_parser("", name)
        assert parser.parse_args(given).watch is True


@needs_helm
def test_network_policies_admit_only_proxies_and_prometheus() -> None:
    documents = rendered(LARGE)
    policies = objects(documents, "NetworkPolicy")
    everything, clients = (policies[name]["spec"] for name in (NAME, f"{NAME}-clients"))

    assert selected(everything["podSelector"]["matchLabels"], documents) == set(pods(documents))
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everything
    given = yaml.safe_load(LARGE.read_text())["networkPolicy"]
    assert everything["egress"] == given["egress"]
    assert selected(clients["podSelector"]["matchLabels"], documents) == {"service"}
    assert clients["ingress"] == [
        {"from": given["proxies"] + given["prometheus"], "ports": [{"port": "http"}]}
    ]


@needs_helm
def test_ingress_and_route_lead_to_the_service() -> None:
    ingress = objects(rendered(LARGE), "Ingress")[NAME]
    documents = rendered(CHART / "examples" / "gateway.yaml")
    route = objects(documents, "HTTPRoute")[NAME]["spec"]

    (rule,) = ingress["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert (rule["host"], path["path"]) == ("infra.example.com", "/")
    assert path["backend"]["service"] == {"name": NAME, "port": {"name": "http"}}
    annotations = ingress["metadata"]["annotations"]
    size = int(annotations["nginx.ingress.kubernetes.io/proxy-body-size"].removesuffix("m"))
    assert size * 1024 * 1024 > 67108864
    (port,) = objects(documents, "Service")[NAME]["spec"]["ports"]
    assert route["rules"] == [{"backendRefs": [{"name": NAME, "port": port["port"]}]}]
    assert route["hostnames"] == ["infra.example.com"]
    assert not objects(documents, "Ingress")


@needs_helm
def test_prometheus_scrapes_the_service_and_has_the_rules_of_the_how_to() -> None:
    documents = rendered(LARGE)
    monitor = objects(documents, "ServiceMonitor")[NAME]["spec"]
    rule = objects(documents, "PrometheusRule")[NAME]
    service = objects(documents, "Service")[NAME]

    alerts = yaml.safe_load((HOW_TO / "alerts.yaml").read_text())
    assert rule["spec"] == alerts
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    # The rules compare with this job.
    assert service["metadata"]["labels"][monitor["jobLabel"]] == "infra-service"
    assert 'job="infra-service"' in (HOW_TO / "alerts.yaml").read_text()
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    networks = settings(pods(documents)["service"])["METRICS_NETWORKS"]
    assert networks == "127.0.0.0/8,::1/128,10.42.0.0/16"


@needs_helm
def test_the_autoscaler_and_not_the_chart_sets_the_number_of_instances() -> None:
    documents = rendered(LARGE)
    scaler = objects(documents, "HorizontalPodAutoscaler")[NAME]["spec"]

    assert scaler["scaleTargetRef"]["name"] in objects(documents, "Deployment")
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (3, 8)
    assert "replicas" not in objects(documents, "Deployment")[NAME]["spec"]
    assert "cpu" in container(pods(documents)["service"])["resources"]["requests"]


@needs_helm
def test_external_secrets_exist_before_the_migrations() -> None:
    documents = rendered(CHART / "examples" / "external-secrets.yaml")
    found = objects(documents, "ExternalSecret")

    assert {
        name: [entry["extract"]["key"] for entry in secret["spec"]["dataFrom"]]
        for name, secret in found.items()
    } == {"infra-service": ["infra/service"], "infra-owner": ["infra/owner"]}
    for name, secret in found.items():
        annotations = secret["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
        assert int(annotations["helm.sh/hook-weight"]) < 0
        # An upgrade replaces the hook, and must not remove the Secret with it.
        assert secret["spec"]["target"] == {"name": name, "creationPolicy": "Orphan"}
    for pod in pods(documents).values():
        assert {"name": "authorities", "configMap": {"name": "infra-ca"}} in pod["spec"]["volumes"]
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


@needs_helm
def test_the_settings_pass_the_checks_of_a_deployment(tmp_path: Path) -> None:
    given = settings(pods(rendered(LARGE))["service"])
    del given["VAR_DIR"]
    installation = Installation(tmp_path, DATABASE_URL="postgres://infra@db.example.com/x", **given)

    assert "no issues" in installation.manage("check", "--deploy", "--fail-level", "WARNING")
