"""Rebuild the changes of resources from all versions of all states."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from infra_service.change_history import recording
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from states.errors import StorageUnavailable
from states.models import State


class Command(ServiceCommand):
    """Store the changes of all versions, including versions from before an upgrade."""

    help = (
        "Rebuild the resource changes that GET /api/v1/changes lists, from all versions of all "
        "states. index_states stores the changes of new versions. Run this command once after an "
        "upgrade from a release that did not record changes. The service and index_states can keep "
        "running."
    )
    examples = ("rebuild_changes", "rebuild_changes --json")

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Rebuild the changes.

        Raises:
            CommandError: the object store does not respond.
        """
        rebuilt = 0
        versioned = State.objects.filter(version_number__gt=0)
        try:
            with self.progress("states", versioned.count) as bar:
                for _state in recording.rebuild():
                    rebuilt += 1
                    bar.advance()
        except StorageUnavailable as error:
            done = counted(rebuilt, "state")
            raise CommandError(f"stopped after {done}: {error.detail}") from error
        self.report({"rebuilt": rebuilt}, f"changes of {counted(rebuilt, 'state')} rebuilt")
