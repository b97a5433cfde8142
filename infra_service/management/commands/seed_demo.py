"""Fill the database with demo data."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.db import IntegrityError
from django.utils import timezone
from rest_framework.exceptions import APIException

from apikeys.models import AuditArchive
from infra_service.demo import histories
from infra_service.demo.integrations import load_trust, load_webhooks
from infra_service.demo.users import load_users
from infra_service.demo.workloads import load_clusters, load_workloads, report_clusters
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.error_text import reason_of

if TYPE_CHECKING:
    from argparse import ArgumentParser

_OF_STATES: Final = (
    "applications", "components", "environments", "states", "versions", "locks", "users",
    "access_tokens", "api_keys", "issuers", "trust_policies", "webhooks",
)  # fmt: skip


class Command(ServiceCommand):
    """Create missing demo states, clusters and workloads."""

    help = (
        "Create demo states, clusters and workloads up to the given numbers. The states have a "
        "history of several weeks, with versions, locks, keys and audit events of people and "
        "pipelines. A repeated run only adds missing objects and new reports of the demo clusters."
    )
    examples = ("seed_demo", "seed_demo --clusters 20 --workloads 10000 --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--states",
            type=int,
            default=histories.MOST,
            help=f"number of states, four per component, at most {histories.MOST}",
        )
        parser.add_argument(
            "--clusters", type=int, default=4, help="number of clusters; workloads require one"
        )
        parser.add_argument(
            "--workloads", type=int, default=1000, help="number of workloads in all clusters"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load the data.

        Raises:
            CommandError: a number is negative or too large, there are workloads without clusters,
                audit events have been archived, so that the demo history would be incomplete, or
                another process created the same objects at the same time.
        """
        states, clusters, workloads = (options[n] for n in ("states", "clusters", "workloads"))
        if min(states, clusters, workloads) < 0 or (workloads and not clusters):
            raise CommandError("the numbers must not be negative, and workloads need a cluster")
        if states > histories.MOST:
            raise CommandError(
                f"--states must be at most {histories.MOST}, because each state has a history"
            )
        if states and AuditArchive.objects.exists():
            raise CommandError(
                "audit events have been archived, and demo states would add events to the archived "
                "period: use another database, or --states 0"
            )
        started = time.monotonic()
        try:
            created = self._load_states(states)
            created["clusters"] = load_clusters(clusters)
            with self.progress("workloads", lambda: workloads) as bar:
                created["workloads"] = load_workloads(workloads, clusters, bar.advance_to)
            reported = report_clusters(clusters)
        except (APIException, IntegrityError) as error:
            raise CommandError(
                f"{reason_of(error)} Another process may have created demo objects at the same "
                "time: wait until it has finished, and run the command again"
            ) from error
        seconds = round(time.monotonic() - started, 1)
        self.report(
            {**created, "reported_clusters": reported, "seconds": seconds},
            f"added {_summary(created)} in {seconds} s",
            f"{reported} demo clusters reported; their next reports are due within a day",
        )

    def _load_states(self, total: int) -> Counter[str]:
        """Load the states with their users, trust policies and webhooks."""
        created, now = Counter(dict.fromkeys(_OF_STATES, 0)), timezone.now()
        with self.progress("states", lambda: total) as bar:
            if total:
                writers, made = load_users(now)
                created.update(made)
                created.update(histories.load_histories(total, writers, now, bar.advance_to))
                created.update(load_trust())
                created.update(load_webhooks())
        return created


def _summary(created: Counter[str]) -> str:
    counts = [f"{count:,} {name.replace('_', ' ')}" for name, count in created.items() if count]
    return ", ".join(counts) or "nothing"
