"""System checks of the database settings. Some query the database (``check --database``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DEFAULT_DB_ALIAS, connections

from infra_service.lib.database import replica

if TYPE_CHECKING:
    from collections.abc import Sequence


@register(Tags.database)
def statements_may_be_prepared(
    databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Report a pooler that breaks the configured prepared statements."""
    wrappers = [connections[alias] for alias in databases or ()]
    return [
        Error(
            "DATABASE_PREPARE_THRESHOLD is set, but a connection pooler between the "
            "service and PostgreSQL mixes up prepared statements.",
            hint="Unset DATABASE_PREPARE_THRESHOLD, or enable prepared statements in the pooler "
            "(pgbouncer 1.21 or later: max_prepared_statements).",
            id="infra_service.E005",
        )
        for wrapper in wrappers
        if wrapper.vendor == "postgresql" and _mixes_up(wrapper)
    ]


@register("settings")
def replica_is_of_postgresql(**_kwargs: Any) -> list[CheckMessage]:
    """Return an error for a replica without PostgreSQL: only PostgreSQL has log positions."""
    kinds = {connections[alias].vendor for alias in connections.settings}
    if replica.ALIAS not in connections.settings or kinds == {"postgresql"}:
        return []
    return [
        Error(
            "DATABASE_REPLICA_URL is set, but DATABASE_URL and DATABASE_REPLICA_URL do not both "
            "name PostgreSQL databases.",
            hint="Only streaming replicas of PostgreSQL are supported.",
            id="infra_service.E004",
        )
    ]


@register(Tags.database)
def replica_reports_its_position(
    databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Report a replica of Aurora, because its readers do not replay a log."""
    if replica.ALIAS not in connections.settings or DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    wrapper = connections[DEFAULT_DB_ALIAS]
    if wrapper.vendor != "postgresql":
        return []
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT to_regproc('aurora_replica_status') IS NOT NULL")
        (is_aurora,) = cursor.fetchone()
    if not is_aurora:
        return []
    return [
        Error(
            "DATABASE_REPLICA_URL is set, but the database is Amazon Aurora. Aurora readers do not "
            "report the log position that they have replayed.",
            hint="Unset DATABASE_REPLICA_URL. The writer then serves all reads.",
            id="infra_service.E011",
        )
    ]


def _mixes_up(wrapper: Any) -> bool:
    # psycopg is slow to import, and commands on SQLite do not need it.
    import psycopg  # noqa: PLC0415

    from infra_service.lib.database.postgresql import pooler  # noqa: PLC0415

    if not wrapper.prepares_through_pooler:
        return False
    parameters = wrapper.get_connection_params()
    try:
        return pooler.breaks_prepared_statements(parameters)
    except psycopg.OperationalError:
        return False  # commands that need the database report this error
