from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from apikeys import audit


class Command(createsuperuser.Command):
    """Django's, known to the audit trail by its name."""

    def handle(self, *args: Any, **options: Any) -> Any:
        """Ask who it shall be, and make them."""
        with audit.acting(lambda: audit.Actor.of_command("createsuperuser")):
            return super().handle(*args, **options)
