"""What the service's own commands begin with."""

from django.core.management.base import BaseCommand


class ServiceCommand(BaseCommand):
    """A command that checks what operators set before it runs, and not the code.

    Checks of the code load every view, which takes as long as all else; ``check`` and ``migrate``
    run them.
    """

    requires_system_checks = ["settings"]
