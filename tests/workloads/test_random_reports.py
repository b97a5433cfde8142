"""Reports with faults in between, then one snapshot: the table is that snapshot."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from django.db import IntegrityError

from tests.workloads.records import apply, comparable, place, record, report, stored
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import WorkloadRecord
from workloads.models import Cluster
from workloads.reporting.errors import ClusterUidMismatch, StaleReport
from workloads.reporting.reports import Place, Report

pytestmark = pytest.mark.both

REPORTS = 250


@dataclass
class Model:
    """The cluster in plain Python: the expected table."""

    rows: dict[Place, WorkloadRecord] = field(default_factory=dict)
    newest: float = -1.0

    def accept(self, given: Report, seconds: float) -> None:
        if given.complete:
            self.rows.clear()
        for gone in given.deleted:
            self.rows.pop(gone, None)
        self.rows.update({Place(r.namespace, r.name, r.kind.value): r for r in given.records})
        self.newest = seconds


def random_record(rng: random.Random, name: str) -> WorkloadRecord:
    return record(
        name,
        namespace=rng.choice("ab"),
        kind=rng.choice(list(WorkloadKind)),
        uid=f"uid-{rng.randrange(2)}",
        labels={"v": str(rng.randrange(3))},
        health_status=rng.choice(list(HealthStatus)),
        replicas_ready=rng.randrange(3),
        cpu_used_millicores=rng.choice([None, 1, 2]),
    )


def random_report(rng: random.Random, seconds: float) -> Report:
    records = {
        (r.namespace, r.name, r.kind): r
        for r in (random_record(rng, f"w{rng.randrange(6)}") for _ in range(rng.randrange(8)))
    }
    complete = rng.random() < 0.3
    named = {Place(n, name, kind.value) for n, name, kind in records}
    others = {
        place(f"w{rng.randrange(6)}", rng.choice("ab"), rng.choice(list(WorkloadKind)).value)
        for _ in range(0 if complete else rng.randrange(4))
    }
    uid = rng.choice(["", "mine"])
    return report(
        seconds,
        *records.values(),
        complete=complete,
        deleted=frozenset(others - named),
        cluster_uid=uid,
    )


def with_fault(
    rng: random.Random, fault: str, number: int, model: Model, sent: list[tuple[float, Report]]
) -> tuple[float, Report]:
    if fault == "late":
        seconds = rng.uniform(0, model.newest)
        return seconds, random_report(rng, seconds)
    if fault == "again" and sent:
        return rng.choice(sent)
    if fault == "foreign":
        return number, report(number, record(), cluster_uid="theirs")
    given = random_report(rng, number)
    if fault == "broken":
        broken = record("x", memory_limits_bytes=-1)
        return number, report(number, *given.records, broken)
    return number, given


def refusal(cluster: Cluster, given: Report) -> Exception | None:
    try:
        apply(cluster, given)
    except (StaleReport, ClusterUidMismatch, IntegrityError) as error:
        return error
    return None


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_table_equals_the_last_snapshot(cluster: Cluster, seed: int) -> None:
    rng = random.Random(seed)
    model, sent = Model(), list[tuple[float, Report]]()
    apply(cluster, report(0, cluster_uid="mine"))
    model.newest = 0.0
    for number in range(1, REPORTS):
        fault = rng.choice(["none", "none", "late", "again", "foreign", "broken"])
        seconds, given = with_fault(rng, fault, number, model, sent)
        if refusal(cluster, given) is None:
            assert fault not in ("foreign", "broken")
            model.accept(given, seconds)
            sent.append((seconds, given))
        else:
            assert fault in ("foreign", "broken") or seconds <= model.newest
        if number % 10 == 0:
            assert_is(cluster, model)

    last = [random_record(rng, f"w{n}") for n in range(6)]
    apply(cluster, report(REPORTS, *last))
    model.accept(report(REPORTS, *last), REPORTS)
    assert_is(cluster, model)


def assert_is(cluster: Cluster, model: Model) -> None:
    rows = stored(cluster)
    assert {p: comparable(row) for p, row in rows.items()} == {
        p: comparable(fields) for p, fields in model.rows.items()
    }
    cluster.refresh_from_db()
    counts = cluster.workload_counts()
    assert counts["total"] == len(rows)
    for status in HealthStatus:
        name = "unspecified" if status is HealthStatus.UNSPECIFIED else status.value.lower()
        assert counts[name] == sum(row.health_status == status.value for row in rows.values())
