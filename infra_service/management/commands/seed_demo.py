"""Fill the database with believable data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from infra_service.commandline.base import ServiceCommand
from infra_service.demo.loading import refresh_statistics
from infra_service.demo.states import load_states
from infra_service.demo.workloads import load_clusters, load_workloads
from states.models import Application, Component, Environment, State, StateVersion
from workloads.models import Cluster, Workload

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """See that there are at least so many demo states, clusters and workloads."""

    help = (
        "See that there are so many demo states, clusters and workloads. Run again it adds what "
        "is missing, and it never changes what is there."
    )
    examples = ("seed_demo", "seed_demo --states 100000 --clusters 50 --workloads 100000 --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--states", type=int, default=2000, help="four to a component")
        parser.add_argument("--clusters", type=int, default=4, help="workloads need one")
        parser.add_argument("--workloads", type=int, default=1000, help="spread over the clusters")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load the data.

        Raises:
            CommandError: a number is negative, or there are workloads and no cluster.
        """
        states, clusters, workloads = (options[n] for n in ("states", "clusters", "workloads"))
        if min(states, clusters, workloads) < 0 or (workloads and not clusters):
            raise CommandError("the numbers are not negative, and workloads need a cluster")
        started = time.monotonic()
        with self.progress("states", lambda: states) as bar:
            created = load_states(states, bar.reach)
        created["clusters"] = load_clusters(clusters)
        with self.progress("workloads", lambda: workloads) as bar:
            created["workloads"] = load_workloads(workloads, clusters, bar.reach)
        refresh_statistics(
            Application, Component, Environment, State, StateVersion, Cluster, Workload
        )
        seconds = round(time.monotonic() - started, 1)
        added = ", ".join(f"{count} {name}" for name, count in created.items())
        self.report({**created, "seconds": seconds}, f"added {added} in {seconds} s")
