"""Privileges of the service's role in PostgreSQL: append-only for the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import ProgrammingError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from apikeys.models import AuditArchive, AuditEvent
from infra_service.lib.database.postgresql.partitions import names_of_partitions

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORK: Final = "SELECT, INSERT, UPDATE, DELETE"
#: Tables with fewer privileges.
_LESS: Final = {
    AuditEvent._meta.db_table: "SELECT, INSERT",
    AuditArchive._meta.db_table: "SELECT",
    MigrationRecorder.Migration._meta.db_table: "SELECT",
}


class ExcessPrivilegesError(Exception):
    """A role with privileges that allow it to change the audit log."""


@transaction.atomic
def grant(role: str) -> None:
    """Grant the role the privileges of the service, and revoke all others on the service's tables.

    Raises:
        ExcessPrivilegesError: the role is a superuser, owns the table or is a member of another
                role, or PUBLIC may change the audit log.
        DatabaseError: the role does not exist, or the caller is not the owner.
    """
    with connection.cursor() as cursor:
        for statement in _statements(role):
            cursor.execute(statement.as_string(cursor.cursor.connection))
        if held := _excess_privilege(role):
            raise ExcessPrivilegesError(f"{role} {held}")


def _statements(role: str) -> Iterator[sql.Composed]:
    to = sql.Identifier(role)
    yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(_schema(), to)
    for name in sorted({*connection.introspection.django_table_names(), *_LESS}):
        table, rights = sql.Identifier(name), sql.SQL(_LESS.get(name, _WORK))
        yield sql.SQL("REVOKE ALL ON {} FROM {}, PUBLIC").format(table, to)
        yield sql.SQL("GRANT {} ON {} TO {}").format(rights, table, to)
    for name in _partitions():
        yield sql.SQL("REVOKE ALL ON {} FROM {}, PUBLIC").format(sql.Identifier(name), to)
    yield sql.SQL("GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA {} TO {}").format(_schema(), to)


def _partitions() -> list[str]:
    """Return the partitions of the audit log, which the role uses only through the table."""
    return names_of_partitions(AuditEvent._meta.db_table)


def _schema() -> sql.Identifier:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        if (name := cursor.fetchone()[0]) is None:
            raise ProgrammingError("connect as the owner of the tables: this role has no schema")
        return sql.Identifier(name)


def _excess_privilege(role: str) -> str:
    """Return the reason why the role could still change the audit log, or an empty text."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT rolsuper OR rolcreaterole OR rolreplication OR rolbypassrls,
                   EXISTS (SELECT 1 FROM pg_auth_members WHERE member = pg_roles.oid),
                   EXISTS (SELECT 1 FROM unnest(%s::text[]) AS name, unnest(%s::text[]) AS verb
                           WHERE has_table_privilege(rolname, name, verb))
                       OR EXISTS (SELECT 1 FROM pg_class WHERE relowner = pg_roles.oid),
                   has_schema_privilege(rolname, current_schema(), 'CREATE')
            FROM pg_roles WHERE rolname = %s
            """,
            [
                [AuditEvent._meta.db_table, AuditArchive._meta.db_table, *_partitions()],
                ["UPDATE", "DELETE", "TRUNCATE", "TRIGGER"],
                role,
            ],
        )
        is_mighty, is_member, changes_audit_log, creates = cursor.fetchone()
    if is_mighty:
        return "has more privileges than a service role"
    if is_member:
        return "is a member of another role"
    if changes_audit_log:
        return "may change the audit log, or owns a table"
    return "may create tables" if creates else ""
