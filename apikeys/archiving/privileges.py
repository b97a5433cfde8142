"""Privileges for archiving: on PostgreSQL the owner has them, the service's role does not."""

from __future__ import annotations

from django.db import connection

from apikeys.models import AuditArchive, AuditEvent


def missing_privilege() -> str:
    """Return the reason why the role may not archive, as a part of a sentence; empty if it may.

    Missing tables need no privilege.
    """
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, has_table_privilege(to_regclass(%s), 'DELETE')"
            " AND has_table_privilege(to_regclass(%s), 'INSERT')",
            [AuditEvent._meta.db_table, AuditArchive._meta.db_table],
        )
        role, may_archive = cursor.fetchone()
    return f"the role {role} cannot archive audit events" if may_archive is False else ""
