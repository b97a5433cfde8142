"""docs/reference/workload-reports.md names every field of a report; its example is accepted."""

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.apiserver import ReplayServer
from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Walk
from tests.support.server import LiveServer
from workloads.reporting.incoming import read_report
from workloads.reporting.wire import Delta, Item, Snapshot
from workloads.reporting.wire_pods import Condition, Container, Pod, PodContainer, Termination

PAGE = (ROOT / "docs" / "reference" / "workload-reports.md").read_text()
RBAC = (ROOT / "docs" / "how-to" / "collector-rbac.yaml").read_text()
EXAMPLES = dict(
    zip(
        ("snapshot", "delta"),
        re.findall(r"^```json\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL),
        strict=True,
    )
)


@pytest.mark.parametrize(
    "form", [Snapshot, Delta, Item, Container, Pod, PodContainer, Termination, Condition]
)
def test_every_field_is_named(form: Any) -> None:
    names = [field.name for field in msgspec.structs.fields(form)]

    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_example_is_taken() -> None:
    example = EXAMPLES["snapshot"]
    report = read_report(example.encode(), complete=True)

    verdicts = [(r.name, r.health_status.value, r.status_reason) for r in report.records]
    assert verdicts == [("web", "HEALTHY", ""), ("cart", "ERROR", "CrashLoopBackOff")]
    assert json.loads(example)["report_interval_seconds"] == report.interval_seconds


def test_the_collector_may_only_read() -> None:
    verbs = set(re.findall(r"verbs: \[(.+)\]", RBAC))

    assert verbs == {"list, watch", "list", "get"}
    assert "secrets" not in re.sub(r"^#.*$|# .*$", "", RBAC, flags=re.MULTILINE)


def test_an_agents_reports(place: Path, service: LiveServer) -> None:
    """The walk happens on a past day, because a report must not be from the future."""
    admin = service.token("cluster:write")
    registered = service.request(
        "POST", "/api/v1/clusters", b'{"cluster": {"name": "reported"}}',
        token=admin, headers={"Content-Type": "application/json"},
    )  # fmt: skip
    cluster_id = registered.json()["cluster"]["id"]
    yesterday = (dt.datetime.now(dt.UTC) - dt.timedelta(days=1)).date()
    words = {
        "01a1fd68-ca28-7587-abb0-61c48a8a8478": cluster_id,
        "2026-11-21T": f"{yesterday}T",
        **manage_py(),
    }
    environment = {
        **readers(place, service.environment),
        "BASE_URL": service.url,
        "CLUSTER": cluster_id,
        "AGENT": service.token("cluster:report"),
    }
    for name, example in EXAMPLES.items():
        (place / f"{name}.json").write_text(example.replace("2026-11-21T", f"{yesterday}T"))

    walk = Walk(place, environment, words)

    assert walk.through(ROOT / "docs" / "reference" / "workload-reports.md")


def test_documented_collection_works(place: Path, service: LiveServer) -> None:
    """The cluster is recorded, so commands for a real cluster are skipped."""
    passed_over = (
        ".venv/bin/pip install --require-hashes -r requirements-kubernetes.txt",
        "kubectl apply -f docs/how-to/collector-rbac.yaml",
        "kubectl create token workload-collector --namespace infra-service --duration 8760h",
    )
    words = {"http://127.0.0.1:8000": service.url, **manage_py()}
    by_hand = dict.fromkeys(passed_over, lambda: "")
    walk = Walk(place, readers(place, service.environment), words, by_hand)

    with ReplayServer() as api:
        api.kubeconfig(place, "prod-eu-1").rename(place / "prod.kubeconfig")
        assert walk.through(ROOT / "docs" / "how-to" / "collect-workloads.md")
