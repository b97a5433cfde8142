"""``manage.py help``: the commands of the service by purpose, followed by Django's commands."""

from __future__ import annotations

import gc
import textwrap
from typing import Final

from django.core.management import BaseCommand, ManagementUtility, get_commands
from django.core.management.color import color_style

#: The commands by purpose, each with a description. Loading all commands for their help texts would
#: take seconds.
PURPOSES: Final = {
    "Set-up": {
        "migrate": "Create or update the tables",
        "check": "Check the settings (--deploy: also for production)",
        "first_operator": "Create the first operator, with a token",
        "createsuperuser": "Create a superuser",
        "changepassword": "Change the password of a user",
        "setup_groups": "Create or reset the groups of the admin",
        "grant_service_role": "Limit the PostgreSQL role of the service",
        "distribute": "Distribute tables across the workers of Citus",
        "seed_demo": "Create demo data",
    },
    "Keys, tokens and users": {
        "seed_apikeys": "Create missing API keys",
        "issue_token": "Issue an access token",
        "list_credentials": "List API keys and access tokens",
        "rotate_apikey": "Replace the secret of an API key",
        "revoke_apikey": "Revoke a leaked or unused key or token",
        "trust": "Configure pipelines without secrets",
        "deactivate_user": "Deactivate a user with its keys and tokens",
    },
    "Background jobs": {
        "deliver_events": "Deliver webhooks",
        "index_states": "Index the resources of states",
        "sync_workloads": "Report the workloads of Kubernetes clusters",
        "housekeeping": "Delete data after its retention period",
    },
    "Import and export": {
        "import_states": "Import states from another backend",
        "export_states": "Export all states as files",
    },
    "Maintenance": {
        "rebuild_changes": "Recompute the changes of all states",
        "verify_states": "Check every stored document",
        "rotate_state_keys": "Re-encrypt all data with the first key",
        "move_documents": "Move documents to or from an object store",
        "prune_states": "Delete old versions and deleted states",
        "prune_catalogue": "Delete unused components and environments",
        "sweep_documents": "Delete unreferenced objects",
        "archive_audit_events": "Move old audit events to files",
    },
}


class ServiceUtility(ManagementUtility):
    """Django's command line with an overview of the service's commands."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        """Return the command. Resume garbage collection, excluding the loaded modules."""
        command = super().fetch_command(subcommand)
        gc.freeze()
        gc.enable()
        return command

    def main_help_text(self, commands_only: bool = False) -> str:  # noqa: FBT001, FBT002 - Django's signature
        """Return the text of ``help``, or the names of all commands for ``help --commands``."""
        if commands_only:
            return str(super().main_help_text(commands_only))
        heading = color_style().NOTICE
        lines = ["", f"Type '{self.prog_name} help <command>' for the options of a command."]
        for purpose, commands in PURPOSES.items():
            lines += ["", heading(f"[{purpose}]")]
            lines += [f"    {name:<24}{line}" for name, line in commands.items()]
        ours = {name for commands in PURPOSES.values() for name in commands}
        others = ", ".join(sorted(get_commands().keys() - ours))
        lines += ["", heading("[Django]"), textwrap.indent(textwrap.fill(others, 76), "    ")]
        if self.settings_exception is not None:
            problem = f"The settings are not valid: {self.settings_exception}."
            lines += ["", heading(f"{problem} See docs/reference/settings.md.")]
        return "\n".join(lines)


def run(argv: list[str]) -> None:
    """Run a management command.

    Garbage collection is suspended while Django loads. Imports create little garbage, but the
    collector would traverse all modules repeatedly, which takes a fifth of the loading time.
    """
    gc.disable()
    try:
        ServiceUtility(argv).execute()
    finally:
        gc.enable()
