"""Measure a large resource index: ``python -m tools.bench.resources [--states N]``.

SQL creates a million states with 30 resources each, in the indexer's form, on a separate PostgreSQL
server. The benchmark requires 25 GB of disk space and half an hour. It then measures complete HTTP
requests to ``:find`` and for pages of 100 resources, with an unrestricted token and with a bound
token. The results are medians of the client's wait.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import psycopg

from tests.support import postgres
from tests.support.server import LiveServer
from tools.bench.figures import Figure, publish, remark
from tools.bench.lists import Client, fill, serving

EACH = 30
ROUNDS = 40
PAGES = 50
#: The maximum duration of a search and of a filtered page, in milliseconds.
FIND, PAGE = 5, 10
#: The number of digests of a resource: its id, and its name or ARN.
DIGESTS = 2
#: The search terms, and the number of instances that each term identifies, far apart.
VALUES = {"one": 1, "a network": 2_000, "default": 100_000, "nobody": 0}
TABLES = ("states_resourceentry", "states_resourcedigest")

# A realistic distribution of types: the first of 120 types has a sixth of all resources, and the
# last has a few thousandths.
ENTRIES = """
INSERT INTO states_resourceentry (id, state_id, component_id, environment_id, address, deposed,
        module, mode, type, name, index_key, provider, cluster_object)
SELECT lpad(to_hex((s.n - 1) * %(each)s + i), 32, '0')::uuid, s.id, s.component_id,
    s.environment_id,
    CASE WHEN h %% 3 = 0 THEN 'module.app_' || h %% 40 || '.' ELSE '' END
        || 'aws_type_' || t || '.name_' || h %% 5000 || '[' || i || ']',
    '', CASE WHEN h %% 3 = 0 THEN 'module.app_' || h %% 40 ELSE '' END,
    CASE WHEN h %% 10 = 0 THEN 'data' ELSE 'managed' END,
    'aws_type_' || t, 'name_' || h %% 5000, to_jsonb(i),
    CASE WHEN t %% 7 = 0 THEN 'registry.terraform.io/hashicorp/google'
        ELSE 'registry.terraform.io/hashicorp/aws' END, NULL
FROM (SELECT row_number() OVER (ORDER BY id) AS n, id, component_id, environment_id
        FROM states_state) s,
    generate_series(0, %(each)s - 1) i,
    LATERAL (SELECT abs(hashint8(s.n * %(each)s + i)::bigint) AS h) hashed,
    LATERAL (SELECT floor(120 * (h %% 10007 / 10007.0) ^ 2.5)::int AS t) typed
"""
OF_ENTRIES = """
INSERT INTO states_resourcedigest (digest, entry_id)
SELECT md5(id::text || '-' || d)::uuid, id
FROM states_resourceentry, generate_series(1, %(digests)s) d
"""
OF_ONE_VALUE = """
INSERT INTO states_resourcedigest (digest, entry_id)
SELECT %(digest)s, id FROM states_resourceentry
WHERE id IN (SELECT lpad(to_hex(n * %(apart)s), 32, '0')::uuid
    FROM generate_series(0, %(times)s - 1) n)
"""


def make(url: str) -> None:
    """Insert the entries and their digests."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '2GB'")
        found = connection.execute("SELECT COUNT(*) FROM states_state").fetchone()
        assert found is not None
        connection.execute("UPDATE states_state SET indexed_number = version_number")
        with without_indexes(connection):
            connection.execute(ENTRIES % {"each": EACH})
            connection.execute(OF_ENTRIES % {"digests": DIGESTS})
        for table in (*TABLES, "states_state"):
            connection.execute(f"VACUUM ANALYZE {table}")
        print_size(connection, found[0])


@contextlib.contextmanager
def without_indexes(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Drop all indexes, and rebuild them after the block. Maintaining them would take hours."""
    definitions = []
    for table in reversed(TABLES):  # tables that reference others come first
        connection.execute(f"ALTER TABLE {table} SET UNLOGGED")
        for name, kind, definition in connection.execute(
            "SELECT conname, contype::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conrelid = %s::regclass AND contype IN ('f', 'p')",
            [table],
        ).fetchall():
            connection.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
            if kind == "p":  # readers do not need foreign keys
                definitions.append(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}')
        for name, definition in connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [table]
        ).fetchall():
            connection.execute(f'DROP INDEX "{name}"')
            definitions.append(definition)
    yield
    for definition in definitions:
        connection.execute(definition)


def name_values(connection: psycopg.Connection[Any]) -> None:
    """Add digests of the search terms to some entries, with the key of this run."""
    import django

    django.setup()
    from states.resources.digests import digest

    found = connection.execute("SELECT COUNT(*) FROM states_state").fetchone()
    assert found is not None
    for value, times in VALUES.items():
        apart = found[0] * EACH // max(times, 1)
        connection.execute(OF_ONE_VALUE, {"digest": digest(value), "apart": apart, "times": times})


def print_size(connection: psycopg.Connection[Any], states: int) -> None:
    sizes = {}
    for table in TABLES:
        found = connection.execute(
            "SELECT pg_table_size(%s), pg_indexes_size(%s)", [table, table]
        ).fetchone()
        assert found is not None
        sizes[table] = found
    (rows, of_rows), (digests, of_digests) = (sizes[table] for table in TABLES)
    total, resources = rows + of_rows + digests + of_digests, states * EACH
    remark(
        f"The index of {states:,} states with {EACH} resources each has {total / 2**30:.1f} GiB, "
        f"or {total / states / 1024:.1f} KiB per state. Of {total / resources:.0f} bytes per "
        f"resource, the row uses {rows / resources:.0f}, its indexes {of_rows / resources:.0f}, "
        f"and {DIGESTS} digests {(digests + of_digests) / resources:.0f}."
    )


def filters(connection: psycopg.Connection[Any]) -> Iterator[tuple[str, str]]:
    """Yield typical filters of resources, by name."""
    middle = connection.execute(
        "SELECT state_id, component_id, environment_id, address FROM states_resourceentry"
        " WHERE id >= lpad(to_hex((SELECT reltuples::bigint / 2 FROM pg_class"
        " WHERE relname = 'states_resourceentry')), 32, '0')::uuid ORDER BY id LIMIT 1"
    ).fetchone()
    assert middle is not None
    state, component, environment, address = middle
    common, rare = "field['type'] = 'aws_type_0'", "field['type'] = 'aws_type_119'"
    google = "field['provider'] = 'registry.terraform.io/hashicorp/google'"
    yield "(none)", ""
    yield "type, common", common
    yield "type, rare", rare
    yield "type, beginning", "field['type'] STARTS_WITH 'aws_type_11'"
    yield "type, none", "field['type'] = 'nobody'"
    yield "name", "field['name'] = 'name_77'"
    yield "address", f"field['address'] = '{address}'"
    yield "module", "field['module'] = 'module.app_7'"
    yield "provider", google
    yield "mode", "field['mode'] = 'data'"
    yield "state", f"field['state_id'] = '{state}'"
    yield "component", f"field['component_id'] = '{component}'"
    yield "environment", f"field['environment_id'] = '{environment}'"
    yield "type + provider", f"{rare} AND {google}"
    yield "type + environment", f"{rare} AND field['environment_id'] = '{environment}'"
    yield "common type + environment", f"{common} AND field['environment_id'] = '{environment}'"
    yield "component + type", f"field['component_id'] = '{component}' AND {common}"
    yield "name + type", f"field['name'] = 'name_77' AND {common}"


def late(client: Client, path: str) -> str:
    """Return the URL of the 51st page, or of the last page."""
    token = ""
    for _ in range(PAGES):
        following = json.loads(client.get(f"{path}&page_token={token}"))["next_page_token"]
        if not following:
            break
        token = following
    return f"{path}&page_token={token}"


def milliseconds(requested: Callable[[], bytes]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        requested()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def pages(client: Client, connection: psycopg.Connection[Any]) -> float:
    """Print the durations of pages, and return the maximum."""
    print(f"{'filter':28} {'page 1':>10} {'items':>6} {'late page':>12}")
    most = 0.0
    for name, text in filters(connection):
        path = f"/api/v1/resources?page_size=100&filter={quote(text)}"
        found = len(json.loads(client.get(path))["resources"])
        after = late(client, path)
        first = milliseconds(partial(client.get, path))
        last = milliseconds(partial(client.get, after))
        most = max(most, first, last)
        print(f"{name:28} {first:7.2f} ms {found:6} {last:9.2f} ms", flush=True)
    return most


def searches(client: Client) -> float:
    """Print the durations of searches, and return the maximum."""
    most = 0.0
    for value in VALUES:
        requested = partial(client.post, "/api/v1/resources:find", json.dumps({"value": value}))
        found = len(json.loads(requested())["resources"])
        took = milliseconds(requested)
        most = max(most, took)
        print(f":find {value}: {took:.2f} ms, {found} results", flush=True)
    return most


def bench(url: str, server: LiveServer) -> None:
    start = ("issue_token", "--user", "operator", "--name", "bench", "--json")
    scopes = ("--scopes", "state:read")
    with psycopg.connect(url, autocommit=True) as connection:
        name_values(connection)
        some = connection.execute(
            "SELECT application_id FROM states_state GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1"
        ).fetchall()
        bound = [text for (one,) in some for text in ("--application", str(one))]
        for scope, options in (("everything", []), ("an application", bound)):
            (issued,) = server.run_commands((*start, *scopes, *options))
            client = Client(server, json.loads(issued)["secret"])
            print(f"\nA token with access to {scope}")
            common: dict[str, Any] = {"peer_name": "the target itself", "unit": "ms", "at_most": 1}
            publish(
                Figure(
                    work=f"search for a value, a token with access to {scope}",
                    ours=searches(client),
                    peer=FIND,
                    **common,
                ),
                Figure(
                    work=f"page of 100 resources, a token with access to {scope}",
                    ours=pages(client, connection),
                    peer=PAGE,
                    **common,
                ),
            )


def measure(url: str) -> None:
    with serving(DATABASE_URL=url, WEB_WORKERS="1") as server:
        os.environ.update(server.environment)
        bench(url, server)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=1_000_000)
    parser.add_argument("--url", help="a database that an earlier run has filled")
    given = parser.parse_args()
    if given.url:
        measure(given.url)
        return
    with postgres.running(survives_power_cuts=False) as database:
        fill(database.url, given.states)
        make(database.url)
        measure(database.url)


if __name__ == "__main__":
    main()
