"""Read clusters and report their workloads."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import structlog
from django.core.management.base import CommandError
from django.db import connection

from apikeys.audit import Actor
from infra_service.commandline.base import ServiceCommand
from infra_service.commandline.stopping import stopped_by_signals
from workloads.collector import connect
from workloads.collector.connect import ConnectionSetupError
from workloads.collector.errors import KubernetesError
from workloads.collector.messages import report_line, trouble_lines
from workloads.collector.sync import Collector
from workloads.models import MAX_REPORT_INTERVAL, Cluster
from workloads.reporting.errors import ClockAhead, ClusterBusy, ClusterUidMismatch, StaleReport

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from workloads.collector.client import ClusterClient
    from workloads.collector.sync import Synced
    from workloads.collector.troubles import Trouble

log = structlog.get_logger("workloads.collector")

_FAILURES = (
    KubernetesError, ClusterUidMismatch, ClockAhead, StaleReport, ClusterBusy, Cluster.DoesNotExist,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Target:
    """A cluster to collect; each has an end of its own."""

    cluster: Cluster
    client: ClusterClient
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)


class Command(ServiceCommand):
    """Synchronise the workloads of Kubernetes clusters with the service."""

    help = (
        "Read the workloads of Kubernetes clusters, once (the default) or continuously, and store "
        "their health and figures. Nothing is deleted after a list that failed. See "
        "docs/how-to/collect-workloads.md."
    )
    examples = (
        "sync_workloads --cluster prod-eu-1 --kubeconfig prod.kubeconfig",
        "sync_workloads --all --watch",
        "sync_workloads --cluster prod-eu-1 --in-cluster --watch --json",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
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
        parser.add_argument(
            "--namespace",
            action="append",
            default=[],
            metavar="N",
            help="read this namespace only; may be repeated",
        )
        parser.add_argument("--context", help="of the kubeconfig; else NAME, else the current one")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Collect until it is done, or until SIGTERM or SIGINT.

        Raises:
            CommandError: a cluster is not registered, not reachable or not the same any more.
        """
        self._namespaces: list[str] = list(dict.fromkeys(options["namespace"]))
        self._failures: list[str] = []
        interval = options["interval"]
        if interval is not None and not 1 <= interval <= MAX_REPORT_INTERVAL:
            raise CommandError(f"--interval is from 1 to {MAX_REPORT_INTERVAL} seconds")
        try:
            targets = self._targets(options)
        except ConnectionSetupError as error:
            raise CommandError(str(error)) from error
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            _end(targets)

        with stopped_by_signals(stop), self.progress("workloads") as self._bar:
            if options["watch"]:
                if not targets and not self._failures:
                    raise CommandError("there is no cluster to follow")
                self._watch(targets, interval)
            else:
                for target in targets:
                    self._collect(target, watch=False, interval=interval)
        # Of those that were followed, some went on until they were told to end.
        if options["watch"] and stopped.is_set():
            return
        if self._failures:
            raise CommandError("; ".join(self._failures))

    def _targets(self, options: dict[str, Any]) -> list[_Target]:
        if options["all"] and (options["in_cluster"] or options["context"]):
            raise CommandError("--all needs a kubeconfig with a context for each cluster")
        if options["all"] and options["namespace"]:
            raise CommandError("--namespace is of one cluster")
        if options["all"]:
            return self._all(options["kubeconfig"])
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            raise CommandError(f"no cluster is registered as {options['cluster']!r}")
        if options["in_cluster"]:
            return [_Target(cluster, connect.in_cluster())]
        context = options["context"]
        if not context:
            names, current = connect.contexts(options["kubeconfig"])
            context = cluster.name if cluster.name in names else current
        return [_Target(cluster, connect.from_kubeconfig(options["kubeconfig"], context))]

    def _all(self, kubeconfig: str | None) -> list[_Target]:
        names, _current = connect.contexts(kubeconfig)
        clusters = Cluster.objects.order_by("name")
        for cluster in clusters.exclude(name__in=names):
            self.note(f"{cluster.name}: skipped, the kubeconfig has no context of this name")
        targets = []
        for cluster in clusters.filter(name__in=names):
            try:
                client = connect.from_kubeconfig(kubeconfig, cluster.name)
            except ConnectionSetupError as error:
                self._fail(cluster, error)
            else:
                targets.append(_Target(cluster, client))
        return targets

    def _watch(self, targets: list[_Target], interval: int | None) -> None:
        """Follow each cluster until it ends; one that does leaves the others alone."""
        threads = [
            threading.Thread(
                target=self._collect,
                args=(target,),
                kwargs={
                    "watch": True,
                    "interval": interval or target.cluster.report_interval_seconds,
                },
            )
            for target in targets
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            # A join without a limit would keep signals from being handled.
            while thread.is_alive():
                thread.join(0.2)

    def _collect(self, target: _Target, *, watch: bool, interval: int | None) -> None:
        cluster = target.cluster

        def progress(resource: str, done: int, left: int | None) -> None:
            total = None if left is None else done + left
            self._bar.show(f"{cluster.name}: {resource}", done, total)

        def reported(synced: Synced) -> None:
            self._write(report_line(cluster.name, synced, as_json=self._as_json))

        def troubled(troubles: list[Trouble]) -> None:
            for line in trouble_lines(cluster.name, troubles, as_json=self._as_json):
                self._write(line)

        collector = Collector(
            target.client,
            cluster.pk,
            actor=Actor.of_command("sync_workloads"),
            progress=progress,
            interval=interval,
            namespaces=self._namespaces,
        )
        try:
            if watch:
                collector.follow(target.stop, reported, troubled)
            else:
                reported(collector.once(target.stop))
        except _FAILURES as error:
            self._fail(cluster, error)
        except Exception as error:
            # In a thread nobody else would notice; the others go on.
            log.exception("collection_failed", cluster=cluster.name)
            self._fail(cluster, error)
        finally:
            target.client.close()
            if watch:  # a thread has a connection of its own
                connection.close()

    def _fail(self, cluster: Cluster, error: Exception) -> None:
        """Keep why the collection of a cluster has ended, and say it now: others may go on."""
        said = f"{cluster.name}: {str(error) or type(error).__name__}"
        self._failures.append(said)
        log.error("collection_ended", cluster=cluster.name, error=str(error))

    def _write(self, line: str) -> None:
        self._bar.make_room()
        self.stdout.write(line)
        self.stdout.flush()


def _end(targets: list[_Target]) -> None:
    """Let a report that is being applied be finished, and wait for nothing else."""
    for target in targets:
        target.stop.set()
        target.client.close()
