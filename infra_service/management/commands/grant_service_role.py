"""Grant a PostgreSQL role only the privileges that the running service requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db import DatabaseError, connection

from infra_service.lib.commandline.base import ServiceCommand
from infra_service.operations import database_roles

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Grant privileges as the table owner, and check that the role cannot change the audit log."""

    help = (
        "Grant a PostgreSQL role the privileges that the running service requires. The role cannot "
        "change or delete audit events. Run the command as the table owner after each migrate. The "
        "command fails if the role has any other privileges."
    )
    examples = ("grant_service_role infra",)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", help="the role in the service's DATABASE_URL")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Grant the privileges.

        Raises:
            CommandError: the database is not PostgreSQL, or the role has too many privileges.
        """
        if connection.vendor != "postgresql":
            raise CommandError("only PostgreSQL has roles")
        try:
            database_roles.grant(options["role"])
        except (DatabaseError, database_roles.ExcessPrivilegesError) as error:
            raise CommandError(str(error).strip()) from error
        self.report({"granted": options["role"]}, f"{options['role']} can run the service")
