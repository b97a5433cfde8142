"""Create the groups of the admin."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from apikeys.actors import Actor
from infra_service.console import groups
from infra_service.lib.commandline.base import ServiceCommand


class Command(ServiceCommand):
    """Create the groups viewer, operator and administrator, and set their permissions."""

    help = (
        "Create the admin's groups viewer, operator and administrator, or reset their permissions. "
        "Run the command after each migrate. The members of the groups stay unchanged."
    )
    examples = ("setup_groups", "setup_groups --json")

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Set up the groups.

        Raises:
            CommandError: the database is not migrated.
        """
        try:
            changed = groups.set_up(Actor.of_command("setup_groups"))
        except LookupError as error:
            raise CommandError(str(error)) from error
        self.report(
            {"changed": changed},
            *(
                f"{name} {'changed' if was_changed else 'unchanged'}"
                for name, was_changed in changed.items()
            ),
        )
