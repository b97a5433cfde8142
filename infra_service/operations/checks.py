"""System checks of a deployment, for ``check --deploy`` and ``check --database default``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks.security.base import check_secret_key
from django.db import DatabaseError, OperationalError, ProgrammingError, connections
from django.db.migrations.loader import MigrationLoader

from apikeys.archiving import missing_privilege
from infra_service import key_canary
from infra_service.operations import distribution
from infra_service.operations.squashed_migrations import TOO_OLD, is_too_old

if TYPE_CHECKING:
    from collections.abc import Sequence


@register(Tags.security, deploy=True)
def database_is_chosen(**_kwargs: Any) -> list[CheckMessage]:
    """Report a missing ``DATABASE_URL`` in production, where SQLite must be an explicit choice."""
    if settings.DATABASE_IS_CHOSEN:
        return []
    return [
        Error(
            "DATABASE_URL is not set: the service would store everything in SQLite in VAR_DIR.",
            hint="Set DATABASE_URL to a PostgreSQL URL, or to sqlite:///PATH to deploy on SQLite.",
            id="infra_service.E007",
        )
    ]


@register(Tags.security)
def secret_key_is_strong(**_kwargs: Any) -> list[CheckMessage]:
    """Report a weak ``SECRET_KEY``, so that the service does not start, by the rule of Django.

    Other commands of this service run nevertheless, for example to revoke a token.
    """
    if settings.DEBUG or not check_secret_key(None):
        return []
    return [
        Error(
            "SECRET_KEY is weak: it has fewer than 50 characters, fewer than 5 different "
            "characters, or the prefix 'django-insecure-'. It signs the sessions of the admin.",
            hint="Generate a key with 'openssl rand -base64 48'. Keep the old key in "
            "SECRET_KEY_FALLBACKS for three days, so that sessions and page tokens stay valid.",
            id="infra_service.E013",
        )
    ]


@register(Tags.database)
def role_may_archive(databases: Sequence[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """Report an archive directory in a process without permission to delete audit events."""
    if not settings.AUDIT_ARCHIVE_DIR or "default" not in (databases or ()):
        return []
    try:
        missing = missing_privilege()
    except OperationalError:
        return []  # commands that need the database report it
    if not missing:
        return []
    return [
        Error(
            f"AUDIT_ARCHIVE_DIR is set, but {missing}.",
            hint="Remove AUDIT_ARCHIVE_DIR from the service's settings, and archive as the owner "
            "of the tables, with infra-archive.timer or the archive profile of Compose.",
            id="infra_service.E008",
        )
    ]


@register(Tags.database)
def database_is_recent(
    databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Report a database that only an earlier release can upgrade, before ``migrate`` changes it."""
    if "default" not in (databases or ()):
        return []
    try:
        if not is_too_old(MigrationLoader(connections["default"])):
            return []
    except ProgrammingError:
        # The command that needs the table reports the error. An unreachable database fails here.
        return []
    return [
        Error(
            TOO_OLD,
            hint="docs/how-to/upgrade.md describes both steps. If the first migrate of a new "
            "database is still running, wait until it ends. If it was interrupted, empty the "
            "database and run migrate again.",
            id="infra_service.E009",
        )
    ]


@register(Tags.database)
def tables_are_distributed(
    databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Report tables that are not distributed over Citus workers, although other tables are."""
    if "default" not in (databases or ()):
        return []
    try:
        missing = distribution.missing()
    except DatabaseError:
        return []  # The command that needs the database reports the error.
    if not missing or len(missing) == len(distribution.TABLES):
        return []
    return [
        Error(
            f"These tables are not distributed, although other tables are: {', '.join(missing)}.",
            hint="Stop the service, and run manage.py distribute as the owner of the tables.",
            id="infra_service.E012",
        )
    ]


@register(Tags.database)
def keys_are_of_the_database(
    databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Report encryption keys that do not include the key of the database."""
    if "default" not in (databases or ()):
        return []
    try:
        key_canary.verify_once(connections["default"])
    except DatabaseError:
        return []  # The command that needs the database reports the error.
    except key_canary.EncryptionKeyWrong as error:
        return [Error(str(error), id="infra_service.E010")]
    return []
