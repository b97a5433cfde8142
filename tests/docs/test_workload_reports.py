"""docs/reference/workload-reports.md names every field of a report, and its example is taken."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.workloads.records import at
from workloads.incoming import read_report
from workloads.wire import (
    Condition,
    Container,
    Delta,
    Item,
    Pod,
    PodContainer,
    Snapshot,
    Termination,
)

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "reference" / "workload-reports.md").read_text()
RBAC = (ROOT / "docs" / "how-to" / "collector-rbac.yaml").read_text()


@pytest.mark.parametrize(
    "form", [Snapshot, Delta, Item, Container, Pod, PodContainer, Termination, Condition]
)
def test_every_field_is_named(form: Any) -> None:
    names = [field.name for field in msgspec.structs.fields(form)]

    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_example_is_taken() -> None:
    (example,) = re.findall(r"^```json\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    later = at(24 * 3600)

    report = read_report(example.encode(), complete=True, now=later)

    verdicts = [(r.name, r.health_status.value, r.status_reason) for r in report.records]
    assert verdicts == [("web", "HEALTHY", ""), ("cart", "ERROR", "CrashLoopBackOff")]
    assert json.loads(example)["report_interval_seconds"] == report.interval_seconds


def test_the_collector_may_only_read() -> None:
    verbs = set(re.findall(r"verbs: \[(.+)\]", RBAC))

    assert verbs == {"get, list, watch", "get, list", "get"}
    assert "secrets" not in re.sub(r"^#.*$|# .*$", "", RBAC, flags=re.MULTILINE)
