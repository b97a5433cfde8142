"""Distribution of the largest tables over the workers of a Citus cluster.

The rows that authorize and serialize requests stay on the coordinator: states with their locks and
revisions, the catalogue, clusters, credentials, the audit log and its readers. Constraints,
triggers and row locks on these tables work as in any PostgreSQL database. The workers store the
rows that grow: documents, the resource index, and workloads with their images and transitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction

from states.models import (
    ImportedVersion,
    ResourceEntry,
    StateCount,
    StateDependency,
    StateVersion,
    VersionFacts,
)
from workloads.models import Transition, Workload, WorkloadImage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import Model

#: The distribution column of each table, which selects the worker by its hash. Tables with the same
#: type of column are colocated: all rows of a state, or of a cluster, are on the same worker.
_TABLES: Final[tuple[tuple[type[Model], str], ...]] = (
    (StateVersion, "state_id"),
    (ResourceEntry, "state_id"),
    (StateDependency, "state_id"),
    (StateCount, "state_id"),
    (Workload, "cluster_id"),
    (WorkloadImage, "cluster_id"),
    (Transition, "cluster_id"),
    # Copied to every server, because lists join them with versions.
    (ImportedVersion, ""),
    (VersionFacts, ""),
)
TABLES: Final = {model._meta.db_table: column for model, column in _TABLES}


class NotACoordinatorError(Exception):
    """A database that cannot distribute tables. The message states the reason."""


def distribute() -> Iterator[str]:
    """Distribute each table that is not distributed yet, and yield its name.

    Each table is distributed in its own transaction, which blocks writers. A repeated call
    continues an interrupted call.

    Raises:
        NotACoordinatorError: the database has no extension, coordinator or workers.
        django.db.Error: the cluster refused a table. The previous tables stay distributed.
    """
    if reason := _obstacle():
        raise NotACoordinatorError(reason)
    _prefer_distributed()
    for table in missing():
        with transaction.atomic(), connection.cursor() as cursor:
            _drop_foreign_keys(cursor, table)
            if column := TABLES[table]:
                _widen_primary_key(cursor, table, column)
                cursor.execute("SELECT create_distributed_table(%s, %s)", [table, column])
            else:
                cursor.execute("SELECT create_reference_table(%s)", [table])
        yield table


def missing() -> list[str]:
    """Return the tables that are not yet distributed. Without Citus, return all tables."""
    if connection.vendor != "postgresql":
        return [*TABLES]
    with connection.cursor() as cursor:
        if not _has_citus(cursor):
            return [*TABLES]
        cursor.execute("SELECT logicalrelid::text FROM pg_dist_partition")
        present = {name for (name,) in cursor.fetchall()}
    return [table for table in TABLES if table not in present]


def _obstacle() -> str:
    if connection.vendor != "postgresql":
        return "the database is not PostgreSQL with the extension citus"
    with connection.cursor() as cursor:
        if not _has_citus(cursor):
            return "the database lacks the extension citus; run CREATE EXTENSION citus"
        cursor.execute(
            "SELECT count(*) FILTER (WHERE groupid = 0),"
            " count(*) FILTER (WHERE groupid > 0 AND shouldhaveshards) FROM pg_dist_node"
        )
        coordinators, workers = cursor.fetchone()
    if not coordinators:
        return "the cluster has no coordinator; run SELECT citus_set_coordinator_host(…)"
    if not workers:
        return "the cluster has no workers; run SELECT citus_add_node(…)"
    return ""


def _has_citus(cursor: Any) -> bool:
    cursor.execute("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')")
    return bool(cursor.fetchone()[0])


def _prefer_distributed() -> None:
    """Configure joins to move rows of the distributed table instead of the local table."""
    with connection.cursor() as cursor:
        name = connection.ops.quote_name(str(connection.settings_dict["NAME"]))
        cursor.execute(
            f"ALTER DATABASE {name} SET citus.local_table_join_policy = 'prefer-distributed'"
        )


def _drop_foreign_keys(cursor: Any, table: str) -> None:
    """Drop the foreign keys from and to the table, because Citus does not support them."""
    cursor.execute(
        "SELECT format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname)"
        " FROM pg_constraint WHERE contype = 'f'"
        " AND to_regclass(%s) IN (conrelid, confrelid)",
        [table],
    )
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)


def _widen_primary_key(cursor: Any, table: str, column: str) -> None:
    """Append the distribution column to the primary key."""
    cursor.execute(
        "SELECT format("
        "'ALTER TABLE %%s DROP CONSTRAINT %%I, ADD CONSTRAINT %%I PRIMARY KEY (%%s, %%I)',"
        " conrelid::regclass, conname, conname,"
        " (SELECT string_agg(quote_ident(attname), ', ' ORDER BY position)"
        "  FROM unnest(conkey) WITH ORDINALITY AS key(number, position)"
        "  JOIN pg_attribute ON attrelid = conrelid AND attnum = number), %s::text)"
        " FROM pg_constraint WHERE contype = 'p' AND conrelid = to_regclass(%s) AND NOT"
        " (SELECT attnum FROM pg_attribute WHERE attrelid = conrelid AND attname = %s)"
        " = ANY (conkey)",
        [column, table, column],
    )
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)
