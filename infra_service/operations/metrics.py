"""Figures of requests, and ``/metrics``: what Prometheus reads, for those who may.

Requests are counted under django-prometheus' names, which dashboards know, but not by its
middleware, which costs too much (docs/adr/0016-own-request-metrics.md). What each app
counts is in its own ``metrics.py``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import Error as DatabaseFailure
from django_prometheus.exports import ExportToDjangoView
from django_prometheus.middleware import Metrics
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from rest_framework.exceptions import PermissionDenied
from rest_framework.views import APIView

from infra_service.lib.api.addresses import parse_address
from infra_service.operations import metric_files
from infra_service.operations.allocated import processes_without_file
from infra_service.operations.credentials import CredentialCollector
from infra_service.operations.housekeeping.metrics import HousekeepingCollector
from infra_service.webhooks.metrics import DeliveryCollector
from states.metrics import IndexCollector, LockCollector
from workloads.metrics import ClusterCollector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest, HttpResponse
    from prometheus_client import Metric
    from rest_framework.request import Request

#: The view's name of a request that reached none, as django-prometheus says it.
NO_VIEW: Final = "<unnamed view>"
_METHODS: Final = frozenset(
    ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "LOCK", "UNLOCK")
)


class RequestMetrics(Metrics):  # type: ignore[misc,unused-ignore]
    """Two of django-prometheus' metrics, of which the others can be had by adding up."""

    def register(self) -> None:
        self.latency: Histogram = self.register_metric(
            Histogram,
            "django_http_requests_latency_seconds_by_view_method",
            "Time from the first byte of our code to its last, by view.",
            ["view", "method"],
            buckets=settings.PROMETHEUS_LATENCY_BUCKETS,
        )
        self.responses: Counter = self.register_metric(
            Counter,
            "django_http_responses_total_by_status_view_method",
            "Answers by status, view and method.",
            ["status", "view", "method"],
        )


_REQUESTS: Final = RequestMetrics.get_instance()
_ERRORS: Final = Counter(
    "infra_errors", "Refused and failed requests, by the reason in the answer.",
    ["reason", "view", "method"],
)  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _children(view: str, method: str, status: int) -> tuple[Histogram, Counter]:
    """Return where such a request counts; looking it up costs as much as counting."""
    return (
        _REQUESTS.latency.labels(view, method),
        _REQUESTS.responses.labels(str(status), view, method),
    )


def observe(view: str, method: str, status: int, seconds: float, reason: str | None) -> None:
    """Count an answered request."""
    method = method if method in _METHODS else "<invalid method>"
    latency, responses = _children(view, method, status)
    latency.observe(seconds)
    responses.inc()
    if reason:
        _ERRORS.labels(reason, view, method).inc()


_COLLECTORS: Final[tuple[type[Collector], ...]] = (
    LockCollector, IndexCollector, ClusterCollector, HousekeepingCollector, DeliveryCollector,
    CredentialCollector,
)  # fmt: skip


class DatabaseCollector(Collector):
    """What is asked of the database at each scrape. Without it, what was counted is still told."""

    def collect(self) -> Iterable[Metric]:
        """Return the figures of the apps, and whether the database answered."""
        found: list[Metric] = []
        try:
            for collector in _COLLECTORS:
                found += collector().collect()
        except DatabaseFailure:
            found = []
        up = GaugeMetricFamily(
            "infra_database_up", "Whether the database answered this scrape.", int(bool(found))
        )
        return [up, *found]


class FileCollector(Collector):
    """Whether all processes of the server are in this scrape."""

    def collect(self) -> Iterable[Metric]:
        """Return how many processes count in memory."""
        yield GaugeMetricFamily(
            "infra_metrics_processes_without_file",
            "Server processes that count in memory because VAR_DIR has no room for their files.",
            processes_without_file(),
        )


class MetricsView(APIView):
    """``/metrics``, for the addresses of METRICS_NETWORKS, and never through a proxy."""

    public = True
    authentication_classes = ()
    http_method_names = ["get", "head"]

    def perform_content_negotiation(self, request: Request, force: bool = True) -> Any:  # noqa: ARG002, FBT001, FBT002 - DRF's signature
        """Take any Accept: there is one format, which no renderer of ours writes."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Return the figures of all worker processes, in Prometheus' text format."""
        if not is_allowed(request._request):
            raise PermissionDenied("Metrics are for METRICS_NETWORKS only, and not by a proxy.")
        registry = CollectorRegistry()
        registry.register(DatabaseCollector())
        registry.register(FileCollector())
        asked = generate_latest(registry)  # before the files are locked: it may take a while
        with metric_files.reading():
            response: HttpResponse = ExportToDjangoView(request._request)
        response.content += asked
        return response


# What proxies add. One that adds nothing cannot be told from a client on this machine.
_OF_PROXIES: Final = frozenset(
    ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST",
     "HTTP_X_FORWARDED_PROTO", "HTTP_X_REAL_IP")
)  # fmt: skip


def is_allowed(request: HttpRequest) -> bool:
    """Whether the request comes straight from an address of METRICS_NETWORKS."""
    if not _OF_PROXIES.isdisjoint(request.META):
        return False
    address = parse_address(request.META["REMOTE_ADDR"])
    if address is None:  # a Unix socket: only a proxy comes from there
        return False
    return any(address in network for network in settings.METRICS_NETWORKS)
