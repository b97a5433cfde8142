"""Distribute the largest tables across the workers of a Citus cluster."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from infra_service.lib.commandline.base import ServiceCommand
from infra_service.operations import distribution


class Command(ServiceCommand):
    """Distribute tables of an existing database. A repeated run continues an interrupted run."""

    help = (
        "Distribute state documents, the resource index and workloads across the workers of a "
        "Citus cluster. Run the command after migrate, as the owner of the tables and of the "
        "database, while the service is stopped. To continue an interrupted run, repeat the "
        "command."
    )
    examples = ("distribute", "distribute --json")

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Distribute the tables.

        Raises:
            CommandError: the database is not a coordinator with workers, or refused a table.
        """
        tables = []
        try:
            with self.progress("tables", lambda: len(distribution.missing())) as bar:
                for table in distribution.distribute():
                    tables.append(table)
                    bar.advance()
        except distribution.NotACoordinatorError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(
                f"stopped after {len(tables)} tables; repeat the command: {str(error).strip()}"
            ) from error
        self.report({"distributed": tables}, f"{len(tables)} tables distributed")
