"""Lists at a million rows: ``python -m tests.bench.lists [--rows N] [--url postgres://…]``.

1. A page of 100 states as a whole request, against the same keyset with a ModelSerializer and
   against DRF's page numbers; the first page and the 5,000th. Interleaved, because the machine is
   shared; medians of the time that the client waits, and the CPU that server and database spend.
2. EXPLAIN ANALYZE of every filter alone and of pairs: milliseconds, rows read, index.

Without ``--url`` a PostgreSQL is started and filled, which takes minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from tests import postgres
from tests.server import LiveServer

ROUNDS = 120
LATE = 5_000


def cpu_seconds(*roots: int) -> float:
    """Return the CPU time of these processes and of what they started."""
    ticks, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            ticks[int(entry.parent.name)] = sum(map(int, fields[11:15]))
            parents[int(entry.parent.name)] = int(fields[1])
    family = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def serving(**environment: str) -> Iterator[LiveServer]:
    """Run a server on a database that may have been prepared before."""
    with tempfile.TemporaryDirectory(prefix="infra-bench-") as directory:
        server = LiveServer(Path(directory), **environment)
        with contextlib.suppress(subprocess.CalledProcessError):
            server.prepare()  # its user may be there
        server.start()
        try:
            yield server
        finally:
            server.close()


def postmaster(url: str) -> int:
    with psycopg.connect(url) as connection:
        ((directory,),) = connection.execute("SHOW data_directory").fetchall()
    return int(Path(directory, "postmaster.pid").read_text().split()[0])


class Client:
    """One kept connection with one token."""

    def __init__(self, server: LiveServer) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self.headers = {"Authorization": f"Bearer {server.token('state:read', 'cluster:read')}"}

    def get(self, path: str) -> Any:
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        return body


def requests(server: LiveServer, client: Client, url: str, late_token: str, rows: int) -> None:
    late = min(LATE, rows // 100 - 1)
    paths = {
        "ours, page 1": "/api/v1/states?page_size=100",
        f"ours, page {late}": f"/api/v1/states?page_size=100&page_token={late_token}",
        "ModelSerializer, keyset": "/bench/keyset?page_size=100",
        "DRF page number, page 1": "/bench/page-number?page=1",
        f"DRF page number, page {late}": f"/bench/page-number?page={late}",
    }
    pids = (server.pid, postmaster(url))
    waited: dict[str, list[float]] = {name: [] for name in paths}
    spent = dict.fromkeys(paths, 0.0)
    for turn in range(-2, ROUNDS // 10):
        for name, path in paths.items():
            before = cpu_seconds(*pids)
            for _ in range(10):
                started = time.perf_counter()
                client.get(path)
                if turn >= 0:
                    waited[name].append((time.perf_counter() - started) * 1000)
            if turn >= 0:
                spent[name] += cpu_seconds(*pids) - before
    wait = {name: statistics.median(times) for name, times in waited.items()}
    cpu = {name: seconds / ROUNDS * 1000 for name, seconds in spent.items()}
    print(f"{'a page of 100 states':28} {'waited':>9} {'ratio':>6} {'CPU':>9} {'ratio':>6}")
    for name in paths:
        ratios = wait[name] / wait["ours, page 1"], cpu[name] / cpu["ours, page 1"]
        print(
            f"{name:28} {wait[name]:6.2f} ms {ratios[0]:6.1f} {cpu[name]:6.2f} ms {ratios[1]:6.1f}"
        )
    print("targets: ModelSerializer at least 3, page number at least 25, page 5,000 as page 1\n")


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
    from tests.plans import plans_of

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
    """Give the newest states an application and an environment of their own, once."""
    from states.models import Application, Environment, State

    if Application.objects.filter(name="bench: the newest").exists():
        return
    application = Application.objects.create(name="bench: the newest")
    environment = Environment.objects.create(name="bench: the newest")
    newest = State.objects.order_by("-id")[: State.objects.count() // 50]
    pks = [state.pk for state in newest]
    State.objects.filter(pk__in=pks).update(application=application)
    # One state of each component; the others keep their environments.
    one = {state.component_id: state.pk for state in newest}
    State.objects.filter(pk__in=list(one.values())).update(environment=environment)


def bench(url: str, rows: int) -> None:
    settings = "tests.bench.peers"
    environment = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": settings, "WEB_WORKERS": "1"}
    with serving(**environment) as server:
        os.environ.update(server.environment, ALLOWED_HOSTS="*", LOG_LEVEL="ERROR")
        import django

        django.setup()
        from django.core import signing
        from django.http import QueryDict
        from django.test import Client as InProcess

        from infra_service.api import pagination
        from infra_service.demo.loading import refresh_statistics
        from states.models import State
        from workloads.models import Cluster

        newest_two_percent()
        refresh_statistics(State)
        client = Client(server)
        before = State.objects.order_by("id")[min(LATE - 1, rows // 100 - 2) * 100 - 1]
        scope = pagination._scope("/api/v1/states", QueryDict())
        token = signing.dumps([scope, str(before.pk)], salt=pagination._SALT)
        requests(server, client, url, token, rows)
        inside = InProcess(headers=client.headers)
        explain(inside, "/api/v1/states", "states_state", filters_of_states())
        cluster = Cluster.objects.order_by("id")[Cluster.objects.count() // 2]
        path = f"/api/v1/clusters/{cluster.pk}/workloads"
        explain(inside, path, "workloads_workload", filters_of_workloads(cluster))


def fill(url: str, rows: int) -> None:
    """Migrate and seed, with the secrets of this run."""
    with serving(DATABASE_URL=url) as server:
        clusters = max(1, rows // 5_000)
        options = ("--states", rows, "--clusters", clusters, "--workloads", rows, "--json")
        print("seeded:", server.manage("seed_demo", *map(str, options)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--url", help="a PostgreSQL that seed_demo has filled")
    given = parser.parse_args()
    if given.url:
        bench(given.url, given.rows)
        return
    with postgres.running() as server:
        fill(server.url, given.rows)
        bench(server.url, given.rows)


if __name__ == "__main__":
    main()
