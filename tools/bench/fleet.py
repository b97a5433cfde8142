"""Measure lists over all clusters: ``python -m tools.bench.fleet`` (on PostgreSQL).

SQL creates 200 clusters with 5,000 workloads each. For each filter, the benchmark measures the
first and the 51st page of 100 items, in this process, without a network. The result is the best of
several requests, because the machine is shared.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from tests.support import postgres
from tools.bench.figures import Figure, publish, remark
from tools.bench.lists import serving

CLUSTERS, EACH = 200, 5_000
ROUNDS = 15
PAGES = 50
#: The maximum duration of a page, and of a page filtered by image, in milliseconds.
PAGE, IMAGE = 15, 10
PROXY = f"sha256:{hashlib.sha256(b'0-17').hexdigest()}"

MAKE = """
CREATE FUNCTION pg_temp.sha(integer, integer) RETURNS text IMMUTABLE LANGUAGE sql AS
    $$ SELECT encode(sha256(($1 || '-' || $2)::bytea), 'hex') $$;
CREATE TEMP TABLE numbered AS
    SELECT gen_random_uuid() AS id, n FROM generate_series(0, %(clusters)s - 1) n;
INSERT INTO workloads_cluster
    (id, name, report_interval_seconds, workloads_unspecified, workloads_healthy,
     workloads_degraded, workloads_error, created_at, updated_at)
    SELECT id, 'cluster-' || n, 60, 0, 0, 0, 0, now(), now() FROM numbered;
INSERT INTO workloads_workload
    (id, cluster_id, namespace, name, kind, uid, labels, health_status, status_reason,
     replicas_desired, replicas_ready, replicas_available, cpu_requests_millicores,
     cpu_limits_millicores, cpu_used_millicores, memory_requests_bytes, memory_limits_bytes,
     memory_used_bytes, containers, observed_at)
    SELECT gen_random_uuid(), c.id, 'team-' || w %% 150, 'service-' || w,
        (ARRAY['Deployment', 'Deployment', 'StatefulSet', 'DaemonSet'])[1 + w %% 4], '',
        jsonb_build_object(
            'app.kubernetes.io/name', 'service-' || w, 'team', 'team-' || w %% 150,
            'only', CASE WHEN w = 77 AND c.n = 123 THEN 'here' ELSE 'elsewhere' END),
        CASE WHEN h < 20 THEN 'ERROR' WHEN h < 70 THEN 'DEGRADED'
            WHEN h < 75 THEN 'WORKLOAD_HEALTH_STATUS_UNSPECIFIED' ELSE 'HEALTHY' END, '',
        3, 3, 3, 300, 600, 120, 268435456, 536870912, 190000000,
        json_build_array(
            json_build_object('name', 'app', 'image', 'registry.example/shop/service-' || w || ':'
                || c.n %% 5, 'restart_count', 0, 'state', 'running', 'ready', true, 'running',
                json_build_array('registry.example/shop/service-' || w || ':' || c.n %% 5
                || '@sha256:' || pg_temp.sha(w, c.n %% 5))),
            json_build_object('name', 'proxy', 'image', 'registry.example/mesh/proxy:1.17',
                'restart_count', 0, 'state', 'running', 'ready', true, 'running',
                json_build_array('registry.example/mesh/proxy:1.17@sha256:'
                || pg_temp.sha(0, 17)))),
        now()
    FROM numbered c, generate_series(0, %(each)s - 1) w,
        LATERAL (SELECT (w * 7919 + c.n * 104729) %% 1000 AS h) health;
INSERT INTO workloads_workloadimage
    (workload_id, number, repository, digest, cluster_id, health_status, namespace, name, kind)
    SELECT id, 0, 'registry.example/shop/' || name,
        substring(containers::text FROM '@(sha256:[0-9a-f]+)'),
        cluster_id, health_status, namespace, name, kind FROM workloads_workload
    UNION ALL SELECT id, 1, 'registry.example/mesh/proxy', 'sha256:' || pg_temp.sha(0, 17),
        cluster_id, health_status, namespace, name, kind FROM workloads_workload;
INSERT INTO workloads_clusterimage (cluster_id, repository, tag, digest, workloads)
    SELECT cluster_id, repository,
        CASE number WHEN 0 THEN (c.n %% 5)::text ELSE '1.17' END, digest, COUNT(*)
    FROM workloads_workloadimage JOIN numbered c ON c.id = cluster_id
    GROUP BY cluster_id, repository, 3, digest;
"""


def make(url: str) -> None:
    with psycopg.connect(url) as connection:
        # One statement per call, because a call with parameters only accepts one.
        for statement in MAKE.split(";\n"):
            if statement.strip():
                connection.execute(statement % {"clusters": CLUSTERS, "each": EACH})
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("workload", "cluster", "workloadimage", "clusterimage"):
            connection.execute(f"VACUUM ANALYZE workloads_{table}")


def filters() -> Iterator[tuple[str, str]]:
    cluster, error = "field['cluster'] = 'cluster-123'", "field['health_status'] = 'ERROR'"
    yield "(none)", ""
    yield "cluster", cluster
    yield "two clusters", "field['cluster'] IN ('cluster-7', 'cluster-123')"
    yield "health, rare", error
    yield "health, common", "field['health_status'] = 'HEALTHY'"
    yield "cluster + health", f"{cluster} AND {error}"
    yield "name", "field['name'] = 'service-77'"
    yield "namespace", "field['namespace'] = 'team-77'"
    yield "label, common", "labels['team'] = 'team-77'"
    yield "label, one row", "labels['only'] = 'here'"
    yield "label + cluster", f"labels['only'] = 'here' AND {cluster}"
    yield "label + health", f"labels['team'] = 'team-77' AND {error}"


def filters_of_images() -> Iterator[tuple[str, str]]:
    yield "(none)", ""
    yield "repository", "field['repository'] = 'registry.example/shop/service-77'"
    yield "repository, beginning", "field['repository'] STARTS_WITH 'registry.example/mesh/'"
    yield "digest", f"field['digest'] = '{PROXY}'"
    yield "tag, common", "field['tag'] = '3'"
    yield "tag, none", "field['tag'] = 'none'"


def filters_by_image() -> Iterator[tuple[str, str]]:
    everywhere = "field['image.repository'] = 'registry.example/mesh/proxy'"
    some = "field['image.repository'] = 'registry.example/shop/service-77'"
    yield "repository, in 200", some
    yield "repository, in all", everywhere
    yield "digest, in all", f"field['image.digest'] = '{PROXY}'"
    yield "repository + health", f"{everywhere} AND field['health_status'] = 'HEALTHY'"
    yield "repository + cluster", f"{everywhere} AND field['cluster'] = 'cluster-123'"
    yield "repository, none", "field['image.repository'] = 'nobody'"


def filters_by_image_of_a_cluster() -> Iterator[tuple[str, str]]:
    everywhere = "field['image.repository'] = 'registry.example/mesh/proxy'"
    yield "repository", everywhere
    yield "digest", f"field['image.digest'] = '{PROXY}'"
    yield "repository + health", f"{everywhere} AND field['health_status'] = 'HEALTHY'"
    yield "repository, one", "field['image.repository'] = 'registry.example/shop/service-77'"


def walk(client: Any, path: str, text: str) -> dict[str, Any]:
    """Return the parameters of the 51st page, or of the last page."""
    query: dict[str, Any] = {"filter": text, "page_size": 100}
    for _ in range(PAGES):
        answer = client.get(path, query)
        assert answer.status_code == 200, answer.content
        token = answer.json()["next_page_token"]
        if not token:
            break
        query["page_token"] = token
    return query


def milliseconds(client: Any, path: str, query: dict[str, Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        answer = client.get(path, query)
        times.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == 200, answer.content
    return min(times)


def pages(client: Any, path: str, items: str, requested: Iterator[tuple[str, str]]) -> float:
    """Print the durations of list pages, and return the maximum."""
    print(f"{path:28} {'page 1':>10} {'items':>6} {'late page':>12}")
    most = 0.0
    for name, text in requested:
        first = {"filter": text, "page_size": 100}
        found = len(client.get(path, first).json()[items])
        at_first = milliseconds(client, path, first)
        late = milliseconds(client, path, walk(client, path, text))
        most = max(most, at_first, late)
        print(f"{name:28} {at_first:7.2f} ms {found:6} {late:9.2f} ms", flush=True)
    return most


def bench(url: str) -> None:
    with serving(DATABASE_URL=url) as server:
        make(url)
        os.environ.update(server.environment, ALLOWED_HOSTS="*", LOG_LEVEL="ERROR")
        import django

        django.setup()
        from django.test import Client

        from workloads.models import Cluster

        token = server.token("cluster:read")
        client = Client(headers={"Authorization": f"Bearer {token}"})
        cluster = Cluster.objects.get(name="cluster-123")
        own, images = f"clusters/{cluster.pk}/workloads", filters_by_image_of_a_cluster()
        for path, items, requested, texts, target in (
            ("workloads", "workloads", "any filter", filters(), PAGE),
            ("workloads", "workloads", "where an image runs", filters_by_image(), IMAGE),
            (own, "workloads", "where an image runs in a cluster", images, PAGE),
            ("images", "images", "any filter", filters_of_images(), IMAGE),
        ):
            publish(
                Figure(
                    work=f"page of 100 {items} at {CLUSTERS * EACH:,} workloads, {requested}",
                    ours=pages(client, f"/api/v1/{path}", items, texts),
                    peer=target,
                    peer_name="the target itself",
                    unit="ms",
                    at_most=1,
                )
            )
        started = time.perf_counter()
        assert client.get("/api/v1/workloads:summary").status_code == 200
        seconds = time.perf_counter() - started
        remark(
            f"Summing {CLUSTERS * EACH:,} workloads of {CLUSTERS} clusters takes {seconds:.1f} s."
        )


def main() -> None:
    with postgres.running() as server:
        bench(server.url)


if __name__ == "__main__":
    main()
