"""The one command of an agent.

Django's own way to a command sets up URLs first, and with them loads views, forms and models: ten
megabytes that an agent has no use for.
"""

from __future__ import annotations

from django.apps import apps
from django.conf import settings

from workloads.management.commands.sync_workloads import Command


def run_agent(argv: list[str]) -> None:
    """Run the command as it is called."""
    apps.populate(settings.INSTALLED_APPS)
    Command().run_from_argv(argv)
