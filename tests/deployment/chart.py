"""The chart of the service, rendered by Helm; ``make manifests`` writes the plain manifests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.helm import HELM
from tests.support.installation import ROOT

CHART: Final = ROOT / "deploy" / "chart"
EXAMPLES: Final = sorted((CHART / "examples").glob("*.yaml"))
INGRESS: Final = CHART / "examples" / "ingress.yaml"
LARGE: Final = CHART / "examples" / "large.yaml"
#: The release, and the name of its objects.
NAME: Final = "infra-service"
MANIFESTS: Final = ROOT / "deploy" / "manifests"
#: The file of each part, and Helm's options that select the part.
PARTS: Final = {
    "migrate.yaml": ("--show-only", "templates/migrate.yaml"),
    "service.yaml": ("--no-hooks",),
}
_KUBERNETES: Final = ("--kube-version", "1.30.0")
each_example = pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)

Object = dict[str, Any]


def helm(command: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm with the chart; the caller checks its exit status."""
    return subprocess.run([HELM, command, *arguments], check=False, capture_output=True, text=True)


def template(values: Path, *options: str) -> str:
    """Return the manifests that Helm renders for a file of values."""
    given = (NAME, CHART, "--namespace", "infra", "--values", values)
    done = helm("template", *given, *_KUBERNETES, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(values: Path) -> list[Object]:
    """Return the objects that Helm renders for a file of values."""
    return [document for document in yaml.safe_load_all(template(values)) if document]


def refusal(directory: Path, values: Object) -> str:
    """Return Helm's message about values that the chart refuses."""
    file = directory / "values.json"
    file.write_text(json.dumps(values))
    done = helm("template", NAME, CHART, "--values", file)
    assert done.returncode != 0, done.stdout
    return done.stderr


def plain(part: str) -> str:
    """Return the text of a plain manifest."""
    return f"# Rendered from deploy/chart by `make manifests`.\n{template(INGRESS, *PARTS[part])}"


def objects(documents: list[Object], kind: str) -> dict[str, Object]:
    """Return the objects of a kind by name."""
    return {d["metadata"]["name"]: d for d in documents if d["kind"] == kind}


def pods(documents: list[Object]) -> dict[str, Object]:
    """Return the pod templates by component."""
    found = [d["spec"]["template"] for d in documents if d["kind"] in ("Deployment", "Job")]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in found}


def container(pod: Object) -> Object:
    (found,) = pod["spec"]["containers"]
    return dict(found)


def settings(pod: Object) -> dict[str, str]:
    return {e["name"]: e["value"] for e in container(pod)["env"] if "value" in e}


def selected(labels: dict[str, str], documents: list[Object]) -> set[str]:
    """Return the components whose pods have these labels."""
    return {
        component
        for component, pod in pods(documents).items()
        if labels.items() <= pod["metadata"]["labels"].items()
    }


if __name__ == "__main__":
    for part in PARTS:
        (MANIFESTS / part).write_text(plain(part))
