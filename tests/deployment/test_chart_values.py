"""The values of deploy/chart: their schema and examples, and the committed plain manifests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra_service import __version__
from tests.deployment.chart import (
    CHART,
    EXAMPLES,
    INGRESS,
    MANIFESTS,
    PARTS,
    Object,
    container,
    each_example,
    helm,
    plain,
    pods,
    refusal,
    template,
)
from tests.deployment.test_container import COMPOSE
from tests.docs.walk import steps
from tests.support.helm import needs_helm
from tests.support.installation import ROOT
from tests.support.schemas import violations

HOW_TO = ROOT / "docs" / "how-to"
VALUES: Object = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Object = json.loads((CHART / "values.schema.json").read_text())


def test_there_are_five_examples_for_the_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert len(EXAMPLES) == 5
    assert chart["version"] == __version__


def test_the_schema_has_exactly_the_documented_values() -> None:
    def compare(values: Object, schema: Object) -> None:
        assert values.keys() == schema["properties"].keys() - {"global"}
        assert schema["additionalProperties"] is False
        for name, value in values.items():
            if isinstance(value, dict) and "properties" in schema["properties"][name]:
                compare(value, schema["properties"][name])

    compare(VALUES, SCHEMA)


@each_example
def test_the_schema_accepts_the_example(values: Path) -> None:
    assert violations(merged(VALUES, yaml.safe_load(values.read_text())), SCHEMA) == []


def merged(defaults: Object, given: Object) -> Object:
    """Merge values like Helm: maps recursively, everything else by replacement."""
    both = {
        name: merged(defaults[name], value) if isinstance(defaults.get(name), dict) else value
        for name, value in given.items()
    }
    return {**defaults, **both}


def test_the_how_to_shows_an_example() -> None:
    page = (HOW_TO / "install-on-kubernetes.md").read_text()
    (shown,) = re.findall(r"^```yaml\n# values\.yaml\n(.+?)^```", page, re.MULTILINE | re.DOTALL)

    assert yaml.safe_load(shown) == yaml.safe_load(INGRESS.read_text())


def test_an_apply_needs_at_most_twelve_commands() -> None:
    """With the two of the job, `terraform init` and `terraform apply`."""
    page = (HOW_TO / "install-on-kubernetes.md").read_text().partition("## Upgrade")[0]
    commands = [step.command for step in steps(page) if step.command]

    assert len(commands) + 2 <= 12, commands


def test_plain_manifests_contain_all_processes_of_compose() -> None:
    """The chart runs all services except these three; archives need a volume."""
    documents = [d for p in PARTS for d in yaml.safe_load_all((MANIFESTS / p).read_text()) if d]

    found = pods(documents)
    assert set(found) == COMPOSE["services"].keys() - {"secrets", "database", "operator"}
    commands = {name: COMPOSE["services"][name].get("command") for name in found}
    position = commands["archive"].index("events")
    del commands["archive"][position - 1 : position + 1]
    assert {name: container(pod).get("command") for name, pod in found.items()} == commands


@needs_helm
@pytest.mark.parametrize("part", PARTS)
def test_helm_renders_the_plain_manifests(part: str) -> None:
    assert (MANIFESTS / part).read_text() == plain(part), "run `make manifests`"


@needs_helm
@each_example
def test_helm_lints_the_example(values: Path) -> None:
    done = helm("lint", "--strict", CHART, "--values", values)

    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image": ""}, "at '/image': minLength: got 0, want 1"),
        ({"host": "https://infra.example.com"}, "at '/host': 'https://infra.example.com' does not"),
        ({"replicsa": 3}, "additional properties 'replicsa' not allowed"),
        ({"index": {"replica": 2}}, "at '/index': additional properties 'replica' not allowed"),
        ({"settings": {"WEB_WORKERS": 4}}, "at '/settings/WEB_WORKERS': got number, want string"),
        ({"settings": {"VAR_DIR": "/data"}}, "at '/settings/VAR_DIR': false schema"),
        ({"networkPolicy": {"proxies": []}}, "at '/networkPolicy/proxies': minItems: got 0"),
        ({"monitoring": {"serviceMonitor": True}}, "at '/monitoring/networks': minLength"),
        ({"labels": {"app.kubernetes.io/name": "other"}}, "at '/labels'"),
        ({"migrate": {"role": "infra; rm -rf /"}}, "at '/migrate/role'"),
        (
            {"monitoring": {"serviceMonitor": True, "networks": "10.0.0.0/8"}},
            "at '/networkPolicy/prometheus': minItems: got 0, want 1",
        ),
    ],
)
def test_values_that_the_chart_refuses(given: Object, message: str, tmp_path: Path) -> None:
    valid = yaml.safe_load(INGRESS.read_text())

    assert message in refusal(tmp_path, merged(valid, given))


@needs_helm
def test_secret_settings_are_no_values(tmp_path: Path) -> None:
    """The units load these settings as credentials, except the token that unwraps keys."""
    unit = (HOW_TO / "infra-service@.service").read_text()
    names = re.findall(r"^LoadCredential=infra-service\.(\w+)$", unit, re.MULTILINE)
    valid = yaml.safe_load(INGRESS.read_text())

    assert len(names) == 8
    for name in (*names, "VAULT_TOKEN"):
        message = refusal(tmp_path, {**valid, "settings": {name: "x"}})
        assert f"settings.{name} is secret: add it to the Secret infra-service" in message


@needs_helm
@pytest.mark.parametrize("release", ["1infra", "infra.service"])
def test_release_name_is_a_name_of_a_service(release: str) -> None:
    assert "set fullnameOverride" in helm("template", release, CHART, "--values", INGRESS).stderr
    override = ("--set", "fullnameOverride=infra")
    assert helm("template", release, CHART, "--values", INGRESS, *override).returncode == 0


@needs_helm
def test_kubernetes_expands_nothing_in_settings() -> None:
    given = ("--set", "settings.SITE_NAME=a$(HOSTNAME)$$b$")
    found = template(INGRESS, *given)

    assert 'value: "a$$(HOSTNAME)$$$$b$$"' in found


@needs_helm
def test_autoscaler_has_no_inverted_range(tmp_path: Path) -> None:
    given = {"autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 2}}
    values = merged(yaml.safe_load(INGRESS.read_text()), given)

    assert "minReplicas is greater than autoscaling.maxReplicas" in refusal(tmp_path, values)


@needs_helm
def test_openshift_can_assign_the_user() -> None:
    nothing = (f"--set=podSecurityContext.{name}=null" for name in VALUES["podSecurityContext"])

    for pod in pods(list(yaml.safe_load_all(template(INGRESS, *nothing)))).values():
        context = pod["spec"]["securityContext"]
        assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_values_that_the_schema_types_as_texts() -> None:
    text: Any = {**yaml.safe_load(INGRESS.read_text()), "nodeSelector": {"gpu": True}}

    assert violations(merged(VALUES, text), SCHEMA)
