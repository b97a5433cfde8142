"""Metrics of requests, and ``/metrics`` for Prometheus.

The request metrics have the names of django-prometheus, which dashboards use
(docs/adr/0016-own-request-metrics.md). Each app defines its own metrics in ``metrics.py``.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from rest_framework.exceptions import PermissionDenied
from rest_framework.views import APIView

from apikeys.metrics import CredentialCollector
from infra_service.lib.api.client_address import parse_address
from infra_service.operations import metric_files
from infra_service.operations.allocated import processes_without_file
from infra_service.operations.housekeeping.metrics import HousekeepingCollector
from infra_service.webhooks.metrics import DeliveryCollector
from states.metrics import CheckCollector, FreezeCollector, IndexCollector, LockCollector
from workloads.metrics import ClusterCollector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest
    from prometheus_client import Metric
    from rest_framework.request import Request

#: The view name of a request without a view, as in django-prometheus.
NO_VIEW: Final = "<unnamed view>"
_METHODS: Final = frozenset(
    ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "LOCK", "UNLOCK")
)


# Seconds. Most requests take milliseconds, but a push of the largest document takes seconds.
_BUCKETS: Final = (
    0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, float("inf"),
)  # fmt: skip
_LATENCY: Final = Histogram(
    "django_http_requests_latency_seconds_by_view_method",
    "Processing time of requests inside the service, by view.",
    ["view", "method"],
    buckets=_BUCKETS,
)
_RESPONSES: Final = Counter(
    "django_http_responses_total_by_status_view_method",
    "Responses by status, view and method.",
    ["status", "view", "method"],
)
_ERRORS: Final = Counter(
    "infra_errors", "Rejected and failed requests by the reason of the error.",
    ["reason", "view", "method"],
)  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _children(view: str, method: str, status: int) -> tuple[Histogram, Counter]:
    """Return the cached children of the metrics, because a lookup costs as much as an increment."""
    return _LATENCY.labels(view, method), _RESPONSES.labels(str(status), view, method)


def observe(view: str, method: str, status: int, seconds: float, reason: str | None) -> None:
    """Count a request."""
    method = method if method in _METHODS else "<invalid method>"
    latency, responses = _children(view, method, status)
    latency.observe(seconds)
    responses.inc()
    if reason:
        _ERRORS.labels(reason, view, method).inc()


_COLLECTORS: Final[tuple[type[Collector], ...]] = (
    LockCollector, FreezeCollector, CheckCollector, IndexCollector, ClusterCollector,
    HousekeepingCollector,
    DeliveryCollector,
    CredentialCollector,
)  # fmt: skip


class DatabaseCollector(Collector):
    """Metrics that query the database at each scrape. An outage removes only these metrics."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the apps, and whether the database responded."""
        found: list[Metric] = []
        try:
            for collector in _COLLECTORS:
                found += collector().collect()
        except DatabaseFailure:
            found = []
        up = GaugeMetricFamily(
            "infra_database_up", "Whether the database responded to this scrape.", int(bool(found))
        )
        return [up, *found]


class FileCollector(Collector):
    """The number of processes that are missing from scrapes."""

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(
            "infra_metrics_processes_without_file",
            "Server processes that keep their counters in memory because VAR_DIR is full.",
            processes_without_file(),
        )


class MetricsView(APIView):
    """The view of ``/metrics``, for direct requests from METRICS_NETWORKS."""

    public = True
    authentication_classes = ()
    http_method_names = ["get", "head"]

    def perform_content_negotiation(self, request: Request, force: bool = True) -> Any:  # noqa: ARG002, FBT001, FBT002 - DRF's signature
        """Accept any media type, because the view has a single format and no renderer."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Return the metrics of all worker processes in Prometheus' text format."""
        if not is_allowed(request._request):
            raise PermissionDenied(
                "Metrics are available only from METRICS_NETWORKS, and not through a proxy."
            )
        registry = CollectorRegistry()
        registry.register(DatabaseCollector())
        registry.register(FileCollector())
        # Before the files are locked, because queries may be slow.
        collected = generate_latest(registry)
        with metric_files.reading():
            counted = generate_latest(_counters())
        return HttpResponse(counted + collected, content_type=CONTENT_TYPE_LATEST)


def _counters() -> CollectorRegistry:
    """Return the counters of all workers, or of a process that counts in its own memory."""
    if metric_files.VARIABLE not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


# Headers that proxies add. A proxy that adds none of them looks like a local client.
_OF_PROXIES: Final = frozenset(
    ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST",
     "HTTP_X_FORWARDED_PROTO", "HTTP_X_REAL_IP")
)  # fmt: skip


def is_allowed(request: HttpRequest) -> bool:
    """Return whether the request comes directly from an address in METRICS_NETWORKS."""
    if not _OF_PROXIES.isdisjoint(request.META):
        return False
    address = parse_address(request.META["REMOTE_ADDR"])
    if address is None:  # a Unix socket: only a proxy uses it
        return False
    return any(address in network for network in settings.METRICS_NETWORKS)
