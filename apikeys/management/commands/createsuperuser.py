from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from apikeys import actors
from infra_service.lib.commandline.base import HelpfulCommand


class Command(HelpfulCommand, createsuperuser.Command):
    """Django's ``createsuperuser``, with the command as the actor in the audit log."""

    examples = ("createsuperuser --username operator --email operator@example.com",)

    def handle(self, *args: Any, **options: Any) -> Any:
        with actors.acting(lambda: actors.Actor.of_command("createsuperuser")):
            return super().handle(*args, **options)
