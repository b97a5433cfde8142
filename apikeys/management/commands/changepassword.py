from typing import Any

from django.contrib.auth.management.commands import changepassword

from apikeys import audit


class Command(changepassword.Command):
    """Django's, known to the audit trail by its name."""

    def handle(self, *args: Any, **options: Any) -> Any:
        """Ask for a password and set it."""
        with audit.acting(lambda: audit.Actor.of_command("changepassword")):
            return super().handle(*args, **options)
