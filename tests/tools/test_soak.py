"""The measurements of ``tools.soak`` include the partitions of the audit log."""

from __future__ import annotations

import json

import pytest
from django.db import connection

from tests.support.server import live_server
from tools.soak.measures import make_events_older, sample

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="measures PostgreSQL"),
]


def test_events_are_measured_and_archived() -> None:
    with live_server(AUDIT_EVENTS_KEPT_DAYS="2") as server:
        server.environment["AUDIT_ARCHIVE_DIR"] = str(server.directory)
        server.token("state:read")

        figures = sample(server).figures
        make_events_older(server)
        removed = json.loads(server.manage("housekeeping", "--json"))["events"]["removed"]

    assert figures["event_bytes"] > 0
    assert removed > 0
