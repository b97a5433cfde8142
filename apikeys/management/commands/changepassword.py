from typing import Any

from django.contrib.auth.management.commands import changepassword

from apikeys import actors
from infra_service.lib.commandline.base import HelpfulCommand


class Command(HelpfulCommand, changepassword.Command):
    """Django's ``changepassword``, with the command as the actor in the audit log."""

    examples = ("changepassword operator",)

    def handle(self, *args: Any, **options: Any) -> Any:
        with actors.acting(lambda: actors.Actor.of_command("changepassword")):
            return super().handle(*args, **options)
