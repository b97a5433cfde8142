"""Records and reports, as small as they can be."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import re
from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from apikeys.actors import Actor
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import ContainerRecord, WorkloadRecord
from workloads.models import Cluster, Workload
from workloads.reporting.applying import apply_report
from workloads.reporting.reports import Applied, Place, Report

START = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
REPORTER = Actor(name="reporter")


def at(seconds: float) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


def record(name: str = "web", **fields: Any) -> WorkloadRecord:
    """Return a healthy Deployment of two replicas, except for the arguments."""
    usual: dict[str, Any] = {
        "kind": WorkloadKind.DEPLOYMENT,
        "namespace": "shop",
        "name": name,
        "uid": f"uid-{name}",
        "labels": {"app": name},
        "health_status": HealthStatus.HEALTHY,
        "status_reason": "",
        "replicas_desired": 2,
        "replicas_ready": 2,
        "replicas_available": 2,
        "containers": (ContainerRecord("app", f"registry.example/{name}:1", 0, "running", True),),
    }
    figures: dict[str, int | None] = {
        "cpu_requests_millicores": 200,
        "cpu_limits_millicores": 400,
        "cpu_used_millicores": 31,
        "memory_requests_bytes": 268435456,
        "memory_limits_bytes": 536870912,
        "memory_used_bytes": 190000000,
        "ephemeral_storage_requests_bytes": 1073741824,
    }
    figures |= {name: fields.pop(name) for name in figures if name in fields}
    return WorkloadRecord(**{**usual, **fields}, figures=figures)


def place(name: str = "web", namespace: str = "shop", kind: str = "Deployment") -> Place:
    return Place(namespace, name, kind)


def report(seconds: float, *records: WorkloadRecord, **fields: Any) -> Report:
    """Return a snapshot of so many seconds after the start, except for the arguments."""
    usual: dict[str, Any] = {"reported_at": at(seconds), "complete": True, "records": records}
    return Report(**{**usual, **fields})


def apply(cluster: Cluster, given: Report) -> Applied:
    return apply_report(cluster_id=cluster.pk, report=given, actor=REPORTER)


def statements(cluster: Cluster, given: Report) -> list[str]:
    """Return the kinds of statements that read or write rows."""
    with CaptureQueriesContext(connection) as captured:
        apply(cluster, given)
    # SQLite inserts many rows by one statement, repeated so many times.
    words = [re.sub(r"^\d+ times: ", "", query["sql"]).split()[0] for query in captured]
    words = ["INSERT" if word == "COPY" else word for word in words]  # as PostgreSQL is given them
    return [word for word in words if word in ("SELECT", "INSERT", "UPDATE", "DELETE")]


def stored(cluster: Cluster) -> dict[Place, Workload]:
    rows = Workload.objects.filter(cluster=cluster)
    return {Place(row.namespace, row.name, row.kind): row for row in rows}


def comparable(row: Workload | WorkloadRecord) -> dict[str, Any]:
    """Return the values of a row or of a record, in the same form."""
    ours = ("id", "cluster", "observed_at", "health_since")
    names = [f.name for f in Workload._meta.fields if f.name not in ours]
    figures = row.figures if isinstance(row, WorkloadRecord) else {}
    values = {n: figures[n] if n in figures else getattr(row, n) for n in names}
    values["kind"], values["health_status"] = str(values["kind"]), str(values["health_status"])
    if isinstance(row, WorkloadRecord):
        values["containers"] = [
            {
                name: getattr(c, name)
                for name in ("name", "image", "restart_count", "state", "ready")
            }
            for c in row.containers
        ]
    return values


def item(name: str = "web", **fields: Any) -> dict[str, Any]:
    """Return an item of a report on the wire."""
    return {"namespace": "shop", "name": name, "kind": "Deployment", **fields}


def healthy(name: str = "web", **fields: Any) -> dict[str, Any]:
    return item(name, health_status="HEALTHY", **fields)


def snapshot_body(seconds: float = 0, items: Sequence[Any] = (), **fields: Any) -> bytes:
    return json.dumps(
        {"reported_at": at(seconds).isoformat(), "workloads": items, **fields}
    ).encode()


def delta_body(seconds: float = 0, **fields: Any) -> bytes:
    return json.dumps({"reported_at": at(seconds).isoformat(), **fields}).encode()


def gzipped(body: bytes) -> bytes:
    return gzip.compress(body, 1)
