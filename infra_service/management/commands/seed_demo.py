"""Fill the database with believable data."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from apikeys.management.base import ServiceCommand
from infra_service.demo.loading import refresh_statistics
from infra_service.demo.states import load_states
from infra_service.demo.workloads import load_clusters, load_workloads
from states.models import Application, Component, Environment, State, StateVersion
from workloads.models import Cluster, Workload

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

_BAR = 30


class Command(ServiceCommand):
    """See that there are at least so many demo states, clusters and workloads."""

    help = (
        "See that there are so many demo states, clusters and workloads. Run again it adds what "
        "is missing, and it never changes what is there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--states", type=int, default=2000)
        parser.add_argument("--clusters", type=int, default=4)
        parser.add_argument("--workloads", type=int, default=1000)
        parser.add_argument("--json", action="store_true", help="print what was added as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load the data, with a progress bar on a terminal.

        Raises:
            CommandError: a number is negative, or there are workloads and no cluster.
        """
        states, clusters, workloads = (options[n] for n in ("states", "clusters", "workloads"))
        if min(states, clusters, workloads) < 0 or (workloads and not clusters):
            raise CommandError("the numbers are not negative, and workloads need a cluster")
        started = time.monotonic()
        created = load_states(states, self._progress("states", states))
        created["clusters"] = load_clusters(clusters)
        created["workloads"] = load_workloads(
            workloads, clusters, self._progress("workloads", workloads)
        )
        refresh_statistics(
            Application, Component, Environment, State, StateVersion, Cluster, Workload
        )
        seconds = round(time.monotonic() - started, 1)
        if options["json"]:
            self.stdout.write(json.dumps({**created, "seconds": seconds}))
        else:
            added = ", ".join(f"{count} {name}" for name, count in created.items())
            self.stdout.write(f"added {added} in {seconds} s")

    def _progress(self, what: str, total: int) -> Callable[[int], None]:
        started = time.monotonic()

        def show(done: int) -> None:
            filled = _BAR * done // total
            pace = done / max(time.monotonic() - started, 0.001)
            bar = "#" * filled + "." * (_BAR - filled)
            end = "\n" if done == total else ""
            self.stderr.write(
                f"\r{what:10} [{bar}] {done:,} of {total:,}, {pace:,.0f}/s", ending=end
            )

        return show if self.stderr.isatty() else lambda _done: None
