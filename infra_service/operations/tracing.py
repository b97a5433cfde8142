"""Traces of requests and PostgreSQL statements by OpenTelemetry, exported by OTLP over HTTP.

Tracing requires the extra ``otel`` and an ``OTEL_EXPORTER_OTLP_ENDPOINT``. Otherwise, nothing is
loaded. The WSGI instrumentation replaces Django's instrumentation, which rejects probes with an
unknown Host.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from infra_service import __version__

if TYPE_CHECKING:
    from django.core.handlers.wsgi import WSGIHandler

#: Entries in the WSGI environment of a request: the trace id, and the name of the view.
TRACE_ID: Final = "infra_service.trace_id"
VIEW: Final = "infra_service.view"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
#: The exported attributes, by their old and new names in OpenTelemetry's conventions. Other
#: attributes are dropped, because the query of a URL can contain a lock ID, and headers a token.
_EXPORTED: Final = frozenset(
    {
        "db.name", "db.namespace", "db.operation.name", "db.query.text", "db.statement",
        "db.system", "db.system.name", "error.type", "http.flavor", "http.method",
        "http.request.method", "http.response.status_code", "http.route", "http.scheme",
        "http.status_code", "net.peer.name", "net.peer.port", "network.protocol.version",
        "server.address", "server.port", "url.path", "url.scheme",
    }
)  # fmt: skip


def is_enabled() -> bool:
    """Return whether an endpoint is set and the extra is installed."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    is_installed = find_spec("opentelemetry") is not None
    return is_installed and any(os.environ.get(name) for name in _ENDPOINTS)


def traced(application: WSGIHandler) -> Any:
    """Return the application with a span for each request, or unchanged if tracing is disabled."""
    if not is_enabled():
        return application
    from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware  # noqa: PLC0415

    return OpenTelemetryMiddleware(application, _started, _responded)


def start() -> None:
    """Start the export. Call this after the fork, because a fork does not inherit the thread."""
    if not is_enabled():
        return
    from opentelemetry import trace  # noqa: PLC0415 - of an extra
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor  # noqa: PLC0415
    from opentelemetry.sdk.resources import (  # noqa: PLC0415
        SERVICE_NAME,
        SERVICE_VERSION,
        OTELResourceDetector,
        Resource,
    )
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from opentelemetry.trace.status import Status  # noqa: PLC0415

    class Processor(BatchSpanProcessor):
        """A processor that exports spans with only the allowed attributes, without exceptions.

        The messages of exceptions can contain values, such as the values of a row in PostgreSQL.
        """

        def on_end(self, span: ReadableSpan) -> None:
            kept = {
                name: value for name, value in (span.attributes or {}).items() if name in _EXPORTED
            }
            copy = ReadableSpan(
                name=span.name,
                context=span.context,
                parent=span.parent,
                resource=span.resource,
                attributes=kept,
                links=span.links,
                kind=span.kind,
                status=Status(span.status.status_code),
                start_time=span.start_time,
                end_time=span.end_time,
                instrumentation_scope=span.instrumentation_scope,
            )
            super().on_end(copy)

    own = Resource({SERVICE_NAME: "infra-service", SERVICE_VERSION: __version__})
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()))
    # An exiting worker waits for its last exports. The default timeout of an export is 10 seconds.
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    provider.add_span_processor(Processor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    if find_spec("psycopg") is not None:
        PsycopgInstrumentor().instrument(tracer_provider=provider)


def _started(span: Any, environ: dict[str, Any]) -> None:
    environ[TRACE_ID] = format(span.get_span_context().trace_id, "032x")


def _responded(span: Any, environ: dict[str, Any], _status: str, _headers: Any) -> None:
    """Name the span after the view, as in the metrics and the log."""
    view = environ.get(VIEW, "")
    span.update_name(f"{environ['REQUEST_METHOD']} {view}".rstrip())
    span.set_attributes({"http.route": view, "url.path": environ.get("PATH_INFO", "")})
