"""Measure filters of a million rows: ``python -m tools.bench.plans [--rows N] [--url URL]``.

The command runs EXPLAIN ANALYZE for the first page of each filter and of pairs of filters, and
prints the milliseconds, the rows read and the index.

Without ``--url``, the benchmark starts and fills a PostgreSQL server, which takes minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.support import postgres
from tools.bench.lists import fill, serving


def filters_of_states() -> Iterator[tuple[str, str]]:
    from states.models import Application, Environment, State

    ordered = State.objects.order_by("id")
    total = ordered.count()
    middle, last = ordered[total // 2], ordered[total - 1]
    recent = ordered[total - total // 100].created_at.isoformat()
    common, rare = (Environment.objects.get(name=n).pk for n in ("production", "sandbox"))
    new = Application.objects.filter(name="bench: the newest").first()
    application = f"field['application_id'] = '{middle.application_id}'"
    environment = f"field['environment_id'] = '{common}'"
    newest = f"field['environment_id'] = '{last.environment_id}'"
    yield "(none)", ""
    yield "component", f"field['component_id'] = '{middle.component_id}'"
    yield "component, newest", f"field['component_id'] = '{last.component_id}'"
    yield "application", application
    if new:
        yield "application, newest 2 %", f"field['application_id'] = '{new.pk}'"
        yield "environment, newest 2 %", newest
    yield "environment, common", environment
    yield "environment, rarest", f"field['environment_id'] = '{rare}'"
    yield "id", f"field['id'] = '{middle.pk}'"
    yield "lineage", f"field['lineage'] = '{middle.lineage}'"
    yield "serial, common", "field['serial'] = 3"
    yield "serial, rarest", "field['serial'] > 150"
    yield "serial, none", "field['serial'] = 99999"
    yield "size, rarest", "field['size_bytes'] > 7000"
    yield "created, newest 1 %", f"field['created_at'] >= '{recent}'"
    yield "updated, newest", "field['updated_at'] >= '2026-01-01T00:00:00Z'"
    yield "locked", "field['locked'] = true"
    yield "application + environment", f"{application} AND {environment}"
    yield "application + rare env.", f"{application} AND field['environment_id'] = '{rare}'"
    yield (
        "component + environment",
        f"field['component_id'] = '{middle.component_id}' AND {environment}",
    )
    yield "application + locked", f"{application} AND field['locked'] = true"
    yield "application + created", f"{application} AND field['created_at'] >= '{recent}'"
    yield "environment + locked", f"{environment} AND field['locked'] = true"
    yield "environment + rare serial", f"{environment} AND field['serial'] > 150"
    yield "environment + created", f"{environment} AND field['created_at'] >= '{recent}'"
    yield "serial + size", "field['serial'] > 100 AND field['size_bytes'] > 3000"


def filters_of_workloads(cluster: Any) -> Iterator[tuple[str, str]]:
    from workloads.models import Workload

    members = Workload.objects.filter(cluster=cluster).order_by("namespace", "name")
    one = members[members.count() // 2]
    instance = one.labels["app.kubernetes.io/instance"]
    namespace, error = f"field['namespace'] = '{one.namespace}'", "field['health_status'] = 'ERROR'"
    daemon, team = "field['kind'] = 'DaemonSet'", "labels['team'] = 'data'"
    yield "(none)", ""
    yield "namespace", namespace
    yield "name", f"field['name'] = '{one.name}'"
    yield "name CONTAINS, none", "field['name'] CONTAINS 'nobody'"
    yield "kind, common", "field['kind'] = 'Deployment'"
    yield "kind, rarest", daemon
    yield "health, common", "field['health_status'] = 'HEALTHY'"
    yield "health, rarest", "field['health_status'] = 'UNSPECIFIED'"
    yield "label, common", team
    yield "label, one row", f"labels['app.kubernetes.io/instance'] = '{instance}'"
    yield "label EXISTS, none", "labels['nobody'] EXISTS"
    yield "CPU used, none", "field['cpu_used_millicores'] > 99999999"
    yield "namespace + kind", f"{namespace} AND {daemon}"
    yield "namespace + health", f"{namespace} AND {error}"
    yield "kind + health", f"{daemon} AND {error}"
    yield "label + health", f"{team} AND {error}"
    yield "label + kind", f"{team} AND {daemon}"
    yield "label + label", f"{team} AND labels['tier'] = 'data'"


def explain(client: Any, path: str, table: str, filters: Iterator[tuple[str, str]]) -> None:
    from tests.support.plans import plans_of

    print(f"{table:28} {'page 1':>9} {'rows read':>9}  read by")
    for name, text in filters:
        times = []
        for _ in range(5):
            with plans_of(table, analyze=True) as plans:
                answer = client.get(f"{path}?page_size=100&filter={quote(text)}")
            assert answer.status_code == 200, answer.content
            (plan,) = plans
            times.append(plan.milliseconds or 0.0)
        how = " ".join(plan.indexes) or " ".join(plan.types)
        print(f"{name:28} {statistics.median(times):6.2f} ms {plan.rows_read:9.0f}  {how}")
    print()


def newest_two_percent() -> None:
    """Move the newest states to a separate application and environment, once."""
    from states.models import Application, Environment, State

    if Application.objects.filter(name="bench: the newest").exists():
        return
    application = Application.objects.create(name="bench: the newest")
    environment = Environment.objects.create(name="bench: the newest")
    newest = State.objects.order_by("-id")[: State.objects.count() // 50]
    pks = [state.pk for state in newest]
    State.objects.filter(pk__in=pks).update(application=application)
    # Move one state per component. The other states keep their environments.
    one = {state.component_id: state.pk for state in newest}
    State.objects.filter(pk__in=list(one.values())).update(environment=environment)


def bench(url: str) -> None:
    with serving(DATABASE_URL=url) as server:
        os.environ.update(server.environment, ALLOWED_HOSTS="*", LOG_LEVEL="ERROR")
        import django

        django.setup()
        from django.test import Client

        from states.models import State
        from tools.bench.loading import refresh_statistics
        from workloads.models import Cluster

        newest_two_percent()
        refresh_statistics(State)
        token = server.token("state:read", "cluster:read")
        client = Client(headers={"Authorization": f"Bearer {token}"})
        explain(client, "/api/v1/states", "states_state", filters_of_states())
        cluster = Cluster.objects.order_by("id")[Cluster.objects.count() // 2]
        path = f"/api/v1/clusters/{cluster.pk}/workloads"
        explain(client, path, "workloads_workload", filters_of_workloads(cluster))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--url", help="a database that seed_demo has filled")
    given = parser.parse_args()
    if given.url:
        bench(given.url)
        return
    with postgres.running() as server:
        fill(server.url, given.rows, max(1, given.rows // 5_000), given.rows)
        bench(server.url)


if __name__ == "__main__":
    main()
