"""Traces of a running service, received by a collector; and nothing of it without the extra."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra_service import __version__
from infra_service.lib.server.handler import ServiceHandler
from infra_service.operations import tracing
from tests.infra_service.test_trace_context import PARENT, TRACE, TRACEPARENT
from tests.states.conftest import document
from tests.support.new_process import output_of
from tests.support.otlp import Collector, collecting
from tests.support.postgres import free_port
from tests.support.server import LiveServer, running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.both
PATH = "/api/v1/state/at/network/production"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


def traced(directory: Path, url: str, **environment: str) -> LiveServer:
    return LiveServer(
        directory, OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_BSP_SCHEDULE_DELAY="100", **environment
    )


def lines(server: LiveServer) -> list[dict[str, Any]]:
    """Return the access events in the server's log."""
    found = [json.loads(line) for line in server.log.read_text().splitlines() if line[:1] == "{"]
    return [line for line in found if line["event"] == "request"]


def test_requests_and_statements_are_exported(tmp_path: Path, collector: Collector) -> None:
    server = traced(
        tmp_path, collector.url, OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_REQUEST=".*"
    )
    with running(server):
        token = server.token("state:read", "state:write")
        headers = {"traceparent": TRACEPARENT}
        pushed = server.request("POST", PATH, document(1), token=token, headers=headers)
        assert pushed.status == 200
        read_again = server.request("GET", f"{PATH}?ID=s3cr3t-lock-id", token=token)
        assert read_again.body == document(1)
        probe = server.request("GET", "/healthz", headers={"Host": "10.0.0.1"})
        assert probe.status == 200
        wait_until(lambda: collector.named("GET healthz"))
        server.stop()
    log = {line["path"] + line["method"]: line for line in lines(server)}

    (push,) = [span for span in collector.spans if span.name.startswith("POST state")]
    assert (push.trace_id, push.parent_id) == (TRACE, PARENT)
    assert push.attributes["url.path"] == PATH
    assert push.resource["service.name"] == "infra-service"
    assert push.resource["service.version"] == __version__
    assert log[f"{PATH}POST"]["trace_id"] == TRACE
    # Without traceparent, the log has the id of the service's own trace.
    (read,) = [span for span in collector.spans if span.name.startswith("GET state")]
    assert log[f"{PATH}GET"]["trace_id"] == read.trace_id != TRACE
    assert collector.paths == {"/v1/traces"}
    statements = [span for span in collector.spans if span.parent_id == push.span_id]
    if server.environment.get("DATABASE_URL"):
        assert len(statements) >= log[f"{PATH}POST"]["queries"] - 2
        assert any("states_stateversion" in span.attributes["db.statement"] for span in statements)
    else:
        assert statements == []  # only PostgreSQL is instrumented
    for span in collector.spans:
        assert span.attributes.keys() <= tracing._EXPORTED
        assert not span.events
        assert not span.status.message
    for secret in (token, "s3cr3t-lock-id", "Bearer"):
        assert secret.encode() not in collector.bodies


def test_absent_collector_affects_no_request(tmp_path: Path) -> None:
    server = traced(tmp_path, f"http://127.0.0.1:{free_port()}")
    with running(server):
        token = server.token("state:read", "state:write")
        assert server.request("POST", PATH, document(1), token=token).status == 200
        assert server.request("GET", PATH, token=token).body == document(1)
        assert server.stop() == 0


def test_other_name_of_the_service(tmp_path: Path, collector: Collector) -> None:
    server = traced(
        tmp_path, collector.url, OTEL_SERVICE_NAME="infra-eu",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=production",
    )  # fmt: skip
    with running(server):
        wait_until(lambda: collector.spans)

    assert collector.spans[0].resource["service.name"] == "infra-eu"
    assert collector.spans[0].resource["deployment.environment.name"] == "production"


_LOADED = """
import sys
import infra_service.wsgi
from infra_service.operations import tracing
tracing.start()
print(type(infra_service.wsgi.application).__name__)
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"opentelemetry", "google"}))
"""


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "x"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_nothing_is_loaded_without_an_endpoint(environment: dict[str, str]) -> None:
    assert output_of(_LOADED, **environment).splitlines() == ["ServiceHandler", ""]


def test_nothing_changes_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    assert tracing.is_enabled()
    monkeypatch.setattr(tracing, "find_spec", lambda _name: None)

    application = ServiceHandler()
    assert tracing.traced(application) is application
    tracing.start()
