"""The trace id of ``traceparent`` in the access log, the audit log and errors."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apikeys.models import AuditEvent
from infra_service.middleware import trace_id_of
from tests.conftest import ClientWith
from tests.infra_service.test_middleware import events

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
ZEROS = "0" * 32


@pytest.mark.parametrize(
    "header",
    [TRACEPARENT, f"00-{TRACE}-{PARENT}-00", f"01-{TRACE}-{PARENT}-01",
     f"fe-{TRACE}-{PARENT}-ff", f"01-{TRACE}-{PARENT}-01-a future member"],
)  # fmt: skip
def test_trace_id_of_a_well_formed_header(header: str) -> None:
    assert trace_id_of(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "", "00", TRACE, f"00-{TRACE}-{PARENT}", f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-01-more", f"00-{TRACE}-{PARENT}-01-", f"00-{TRACE}-{PARENT}-012",
        f"01-{TRACE}-{PARENT}-01more", f"ff-{TRACE}-{PARENT}-01", f"00-{ZEROS}-{PARENT}-01",
        f"00-{TRACE}-{ZEROS[:16]}-01", f"00-{TRACE.upper()}-{PARENT}-01",
        f"0G-{TRACE}-{PARENT}-01", f"00-{TRACE[:-1]}g-{PARENT}-01", f" {TRACEPARENT}",
        f"{TRACEPARENT}\n", f"{TRACEPARENT},{TRACEPARENT}", f"00-{TRACE}-{PARENT}-\u0660\u0661",
        "00-" + "0" * 10_000,
    ],
)  # fmt: skip
def test_malformed_header_is_ignored(header: str) -> None:
    assert trace_id_of(header) == ""


@pytest.mark.both
def test_trace_id_in_log_and_audit_log(
    client_with: ClientWith, capfd: pytest.CaptureFixture[str]
) -> None:
    client = client_with("state:write", "audit:read")
    counts = []
    # The first request also records the first use of the token.
    for name, headers in (("first", {}), ("a", {}), ("b", {"traceparent": TRACEPARENT})):
        events(capfd)
        with CaptureQueriesContext(connection) as queries:
            client.generic(
                "POST", "/api/v1/applications", json.dumps({"application": {"name": name}}),
                "application/json", headers=headers,
            )  # fmt: skip
        counts.append(len(queries))

    (logged,) = events(capfd)
    recorded = AuditEvent.objects.latest("id")
    assert logged["trace_id"] == recorded.details["trace_id"] == TRACE
    assert counts[1] == counts[2]
    for expression, traces in (
        (f"field['trace_id'] = '{TRACE}'", [TRACE]),
        (f"field['trace_id'] IN ('{TRACE}', 'x')", [TRACE]),
        ("field['trace_id'] EXISTS", [TRACE]),
        (
            f"field['trace_id'] != '{TRACE}' AND field['action'] = 'application.create'",
            [None, None],
        ),
        ("field['trace_id'] IS NULL AND field['action'] = 'application.create'", [None, None]),
    ):
        found = client.get("/api/v1/audit-events", {"filter": expression}).json()["audit_events"]
        assert [event["trace_id"] for event in found] == traces, expression


@pytest.mark.parametrize("path", ["/v1/whoami", "/api/v1/nothing"])
def test_trace_id_in_an_error(db: None, path: str) -> None:
    def details(**headers: str) -> Any:
        answer = Client(raise_request_exception=False).get(path, headers=headers)
        return answer["X-Request-ID"], answer.json()["error"]["details"][-1]

    request_id, info = details(traceparent=TRACEPARENT)
    assert info == {
        "@type": "type.googleapis.com/google.rpc.RequestInfo",
        "request_id": request_id,
        "trace_id": TRACE,
    }
    assert "trace_id" not in details(traceparent=TRACEPARENT.upper())[1]


@pytest.mark.parametrize("body", ["a=1", "grant_type=x&client_id=fed-1&subject_token=x"])
def test_trace_id_in_an_error_of_the_exchange(db: None, body: str) -> None:
    """OAuth's format has no other member for ids."""
    form = "application/x-www-form-urlencoded"
    for traceparent, end in ((TRACEPARENT, f" Trace id: {TRACE}."), ("", "")):
        answer = Client().generic(
            "POST", "/v1/oauth/token", body, form, headers={"traceparent": traceparent}
        )
        description = answer.json()["error_description"]
        assert description.endswith(f" Request id: {answer['X-Request-ID']}.{end}")


def test_trace_id_on_an_error_page(db: None) -> None:
    for traceparent in (TRACEPARENT, ""):
        page = Client(enforce_csrf_checks=True).post(
            "/admin/login/", {}, headers={"traceparent": traceparent}
        )
        assert page.status_code == 403
        assert (TRACE in page.content.decode()) == bool(traceparent)


def test_trace_id_does_not_stay_for_the_next_request(capfd: pytest.CaptureFixture[str]) -> None:
    client = Client()
    events(capfd)
    client.get("/healthz", headers={"traceparent": TRACEPARENT})
    client.get("/healthz")

    first, second = events(capfd)
    assert first["trace_id"] == TRACE
    assert "trace_id" not in second
