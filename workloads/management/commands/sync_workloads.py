"""Read clusters and report their workloads."""

from __future__ import annotations

import json
import signal
import threading
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from apikeys.audit import Actor
from workloads.collector import connect
from workloads.collector.connect import ConnectionSetupError
from workloads.collector.errors import KubernetesError
from workloads.collector.sync import Collector
from workloads.models import MAX_REPORT_INTERVAL, Cluster
from workloads.report_errors import ClockAhead, ClusterBusy, ClusterUidMismatch, StaleReport

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from workloads.collector.client import ClusterClient
    from workloads.collector.sync import Synced

_FAILURES = (
    KubernetesError, ClusterUidMismatch, ClockAhead, StaleReport, ClusterBusy, Cluster.DoesNotExist,
)  # fmt: skip


class Command(BaseCommand):
    """Synchronise the workloads of Kubernetes clusters with the service."""

    help = (
        "Read the workloads of Kubernetes clusters, once (the default) or continuously, and store "
        "their health and figures. Nothing is deleted after a list that failed. See "
        "docs/how-to/collect-workloads.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--cluster", metavar="NAME", help="the registered cluster to read")
        which.add_argument(
            "--all",
            action="store_true",
            help="every registered cluster that a context of the kubeconfig is named after",
        )
        how_often = parser.add_mutually_exclusive_group()
        how_often.add_argument("--once", action="store_true", help="one snapshot (the default)")
        how_often.add_argument("--watch", action="store_true", help="follow changes until SIGTERM")
        parser.add_argument(
            "--interval", type=int, metavar="S", help="seconds between snapshots (the cluster's)"
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--kubeconfig", metavar="F", help="a file; else $KUBECONFIG or ~/.kube")
        where.add_argument(
            "--in-cluster", action="store_true", help="the service account of this pod"
        )
        parser.add_argument("--context", help="of the kubeconfig; else NAME, else the current one")
        parser.add_argument("--json", action="store_true", help="a line of JSON for each report")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Collect until it is done, or until SIGTERM or SIGINT.

        Raises:
            CommandError: a cluster is not registered, not reachable or not the same any more.
        """
        self._as_json, self._stop = options["json"], threading.Event()
        self._failures: list[str] = []
        interval = options["interval"]
        if interval is not None and not 1 <= interval <= MAX_REPORT_INTERVAL:
            raise CommandError(f"--interval is from 1 to {MAX_REPORT_INTERVAL} seconds")
        try:
            clients = self._clients(options)
        except ConnectionSetupError as error:
            raise CommandError(str(error)) from error

        def end(*_: Any) -> None:
            # Not here: this interrupts the main thread, which may hold a lock that it takes.
            threading.Thread(target=self._end, args=(clients,)).start()

        handlers = {
            number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            self._run(clients, watch=options["watch"], interval=interval)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if self._failures:
            raise CommandError("; ".join(self._failures))

    def _clients(self, options: dict[str, Any]) -> list[tuple[Cluster, ClusterClient]]:
        if options["all"] and (options["in_cluster"] or options["context"]):
            raise CommandError("--all needs a kubeconfig with a context for each cluster")
        if options["all"]:
            return self._all(options["kubeconfig"])
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            raise CommandError(f"no cluster is registered as {options['cluster']!r}")
        if options["in_cluster"]:
            return [(cluster, connect.in_cluster())]
        context = options["context"]
        if not context:
            names, current = connect.contexts(options["kubeconfig"])
            context = cluster.name if cluster.name in names else current
        return [(cluster, connect.from_kubeconfig(options["kubeconfig"], context))]

    def _all(self, kubeconfig: str | None) -> list[tuple[Cluster, ClusterClient]]:
        names, _current = connect.contexts(kubeconfig)
        clusters = Cluster.objects.order_by("name")
        for cluster in clusters.exclude(name__in=names):
            self.stderr.write(
                f"{cluster.name}: skipped, the kubeconfig has no context of this name"
            )
        return [
            (cluster, connect.from_kubeconfig(kubeconfig, cluster.name))
            for cluster in clusters.filter(name__in=names)
        ]

    def _run(
        self, clients: list[tuple[Cluster, ClusterClient]], *, watch: bool, interval: int | None
    ) -> None:
        if not watch:
            for cluster, client in clients:
                self._collect(cluster, client, watch=False, interval=interval)
            return
        threads = [
            threading.Thread(
                target=self._collect,
                args=(cluster, client),
                kwargs={"watch": True, "interval": interval or cluster.report_interval_seconds},
            )
            for cluster, client in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            # A join without a limit would keep signals from being handled.
            while thread.is_alive():
                thread.join(0.2)

    def _collect(
        self, cluster: Cluster, client: ClusterClient, *, watch: bool, interval: int | None
    ) -> None:
        def progress(resource: str, done: int, left: int | None) -> None:
            if self.stderr.isatty():
                total = "" if left is None else f" of {done + left}"
                self.stderr.write(f"\r\033[K{cluster.name}: {resource} {done}{total}", ending="")

        def reported(synced: Synced) -> None:
            self._report(cluster, synced)

        collector = Collector(
            client,
            cluster.pk,
            actor=Actor.of_command("sync_workloads"),
            progress=progress,
            interval=interval,
        )
        try:
            if watch:
                collector.follow(self._stop, reported)
            else:
                reported(collector.once(self._stop))
        except _FAILURES as error:
            self._failures.append(f"{cluster.name}: {error}")
        finally:
            client.close()
            if watch:  # a thread has a connection of its own
                connection.close()

    def _report(self, cluster: Cluster, synced: Synced) -> None:
        applied = synced.applied
        counts = {
            "created": applied.created,
            "updated": applied.updated,
            "deleted": applied.deleted,
            "unchanged": applied.unchanged,
        }
        if self.stderr.isatty():
            self.stderr.write("\r\033[K", ending="")
        if self._as_json:
            kind = "snapshot" if synced.complete else "delta"
            seconds = round(synced.seconds, 3)
            line = {"cluster": cluster.name, "report": kind, **counts, "seconds": seconds}
            self.stdout.write(json.dumps(line))
        else:
            said = ", ".join(f"{number} {word}" for word, number in counts.items())
            self.stdout.write(f"{cluster.name}: {said} ({synced.seconds:.1f} s)")
        self.stdout.flush()

    def _end(self, clients: list[tuple[Cluster, ClusterClient]]) -> None:
        """Let a report that is being applied be finished, and wait for nothing else."""
        self._stop.set()
        for _cluster, client in clients:
            client.close()
