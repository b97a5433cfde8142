"""A collector of OTLP over HTTP: it decodes the spans of every request."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Span:
    """A received span, with its attributes and those of its resource."""

    def __init__(self, span: Any, resource: Any) -> None:
        self.name: str = span.name
        self.trace_id: str = span.trace_id.hex()
        self.span_id: str = span.span_id.hex()
        self.parent_id: str = span.parent_span_id.hex()
        self.attributes = {one.key: _plain(one.value) for one in span.attributes}
        self.resource = {one.key: _plain(one.value) for one in resource.attributes}
        self.events = list(span.events)
        self.status = span.status


def _plain(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


class Collector:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.spans: list[Span] = []
        self.paths: set[str] = set()
        self.bodies = b""

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector on a free loopback port during the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.headers["Content-Type"] == "application/x-protobuf"
            given = ExportTraceServiceRequest.FromString(body)
            collector.paths.add(self.path)
            collector.bodies += body
            collector.spans += [
                Span(span, of.resource)
                for of in given.resource_spans
                for scope in of.scope_spans
                for span in scope.spans
            ]
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
