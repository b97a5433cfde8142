"""Run the command of an agent.

Django's command line first loads the URLs, and with them the views, forms and models. They would
take 10 MB of memory, and an agent does not use them.
"""

from __future__ import annotations

from django.apps import apps
from django.conf import settings

from workloads.management.commands.sync_workloads import Command


def run_agent(argv: list[str]) -> None:
    """Run the command with the given arguments."""
    apps.populate(settings.INSTALLED_APPS)
    Command().run_from_argv(argv)
