"""Make the groups of the admin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from apikeys.audit import Actor
from apikeys.management.base import ServiceCommand
from infra_service import groups

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Make the groups viewer, operator and administrator what they should be."""

    help = (
        "Make the admin's groups viewer, operator and administrator, or give them back what they "
        "should be allowed. Run it after each migrate; who is in them is left alone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Set the groups up.

        Raises:
            CommandError: the database is not migrated.
        """
        try:
            changed = groups.set_up(Actor.of_command("setup_groups"))
        except LookupError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"changed": changed}))
            return
        for name, was_changed in changed.items():
            self.stdout.write(f"{name} {'changed' if was_changed else 'as it should be'}")
