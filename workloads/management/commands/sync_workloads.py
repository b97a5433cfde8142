"""The command that reads clusters and reports their workloads."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from django.core.management.base import CommandError

from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.heartbeat import Heartbeat, add_heartbeat_option
from infra_service.lib.commandline.stopping import stopped_by_signals
from workloads.collection import MAX_REPORT_INTERVAL
from workloads.collector.connect import ConnectionSetupError
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.collector.errors import KubernetesError
from workloads.collector.messages import report_line, trouble_lines
from workloads.collector.sync import Collector
from workloads.management import reporting

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from workloads.collector.sync import Synced
    from workloads.collector.targets import Target
    from workloads.collector.troubles import Trouble

log = structlog.get_logger("workloads.collector")

_FAILURES = (KubernetesError, NotReportedError, ReportingEndedError)


class Command(ServiceCommand):
    """The command that synchronizes the workloads of Kubernetes clusters with the service."""

    help = (
        "Read the workloads of Kubernetes clusters, once (the default) or continuously, and store "
        "their health and figures, or report them to the service as an agent. If a list request to "
        "Kubernetes fails, no workload is deleted. See docs/how-to/collect-workloads.md and "
        "install-the-agent.md."
    )
    examples = (
        "sync_workloads --cluster prod-eu-1 --kubeconfig prod.kubeconfig",
        "sync_workloads --all --watch",
        "sync_workloads --cluster prod-eu-1 --in-cluster --watch --json",
        "sync_workloads --report-to https://infra.example.com --token-file F --cluster ID --watch",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--cluster", metavar="NAME", help="name of the registered cluster to read"
        )
        which.add_argument(
            "--all",
            action="store_true",
            help="read every registered cluster with a context of the same name in the kubeconfig",
        )
        how_often = parser.add_mutually_exclusive_group()
        how_often.add_argument(
            "--once", action="store_true", help="take a single snapshot (the default)"
        )
        how_often.add_argument(
            "--watch", action="store_true", help="watch for changes until SIGTERM or SIGINT"
        )
        parser.add_argument(
            "--interval",
            type=int,
            metavar="S",
            help="seconds between snapshots, stored as the cluster's report interval; the default "
            "is the stored interval, or 60 with --report-to",
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--kubeconfig",
            metavar="F",
            help="a kubeconfig file; the default is $KUBECONFIG, else ~/.kube/config",
        )
        where.add_argument(
            "--in-cluster", action="store_true", help="use the service account of this pod"
        )
        parser.add_argument(
            "--namespace",
            action="append",
            default=[],
            metavar="N",
            help="read only this namespace; may be repeated",
        )
        parser.add_argument(
            "--context",
            help="context in the kubeconfig; the default is NAME, else the current context",
        )
        add_heartbeat_option(parser)
        reporting.add_arguments(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Collect once, or until SIGTERM or SIGINT.

        Raises:
            CommandError: a cluster is not registered or reachable, or is not the expected cluster.
        """
        self._namespaces: list[str] = list(dict.fromkeys(options["namespace"]))
        self._failures: list[str] = []
        interval = options["interval"]
        if interval is not None and not 1 <= interval <= MAX_REPORT_INTERVAL:
            raise CommandError(f"--interval must be from 1 to {MAX_REPORT_INTERVAL} seconds")
        try:
            targets = self._targets(options)
        except ConnectionSetupError as error:
            raise CommandError(str(error)) from error
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            for target in targets:
                target.stop()

        with stopped_by_signals(stop), self.progress("workloads") as self._bar:
            if options["watch"]:
                if not targets and not self._failures:
                    raise CommandError("there is no cluster to watch")
                heartbeat = Heartbeat(options["heartbeat_file"], {t.name for t in targets})
                self._watch(targets, interval, heartbeat)
            else:
                for target in targets:
                    self._collect(target, interval)
        # A signal is the normal end of a watch, even if some clusters failed earlier.
        if options["watch"] and stopped.is_set():
            return
        if self._failures:
            raise CommandError("; ".join(self._failures))

    def _targets(self, options: dict[str, Any]) -> list[Target]:
        if options["all"] and (options["in_cluster"] or options["context"]):
            raise CommandError("--all requires a kubeconfig with a context for each cluster")
        if options["all"] and options["namespace"]:
            raise CommandError("--namespace requires a single cluster")
        if options["report_to"] is not None:
            if options["all"]:
                raise CommandError(
                    "an agent reports a single cluster: --report-to requires --cluster"
                )
            return [reporting.reporting_target(options, self.get_version())]
        reporting.refuse_options_of_agents(options)
        # An agent has no database, and imports nothing that needs a database.
        from workloads.management import registered  # noqa: PLC0415

        if options["all"]:
            return registered.registered_clusters(options["kubeconfig"], self.note, self._fail)
        return [registered.registered_cluster(options)]

    def _watch(self, targets: list[Target], interval: int | None, heartbeat: Heartbeat) -> None:
        """Watch all clusters, each in a thread. A watch that ends does not affect the others."""
        threads = [
            threading.Thread(
                target=self._collect,
                args=(target, interval or target.interval, heartbeat),
            )
            for target in targets
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            # A join without a limit would block signals.
            while thread.is_alive():
                thread.join(0.2)

    def _collect(
        self, target: Target, interval: int | None, heartbeat: Heartbeat | None = None
    ) -> None:
        """Collect a cluster once, or watch it with a heartbeat."""

        def progress(resource: str, done: int, left: int | None) -> None:
            total = None if left is None else done + left
            self._bar.show(f"{target.name}: {resource}", done, total)

        def reported(synced: Synced) -> None:
            self._write(report_line(target.name, synced, as_json=self._as_json))

        def troubled(troubles: list[Trouble]) -> None:
            for line in trouble_lines(target.name, troubles, as_json=self._as_json):
                self._write(line)

        collector = Collector(
            target.client,
            target.destination,
            progress=progress,
            interval=interval,
            namespaces=self._namespaces,
        )
        try:
            if heartbeat is not None:
                beat = partial(heartbeat.beat, target.name)
                collector.follow(target.stopped, reported, troubled, beat)
            else:
                reported(collector.once(target.stopped))
        except _FAILURES as error:
            self._fail(target.name, error)
        except Exception as error:
            # An exception in a thread would remain unnoticed. The other clusters continue.
            log.exception("collection_failed", cluster=target.name)
            self._fail(target.name, error)
        finally:
            target.client.close()
            if heartbeat is not None:
                heartbeat.end(target.name)
                target.destination.close()  # each thread has its own connection

    def _fail(self, name: str, error: Exception) -> None:
        """Record and print the reason why the collection of a cluster ended."""
        failure = f"{name}: {str(error) or type(error).__name__}"
        self._failures.append(failure)
        log.error("collection_ended", cluster=name, error=str(error))

    def _write(self, line: str) -> None:
        self._bar.clear_bar()
        self.stdout.write(line)
        self.stdout.flush()
