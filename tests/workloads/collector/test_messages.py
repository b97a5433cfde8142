"""The collector's messages about reports and failures, also when the reader has gone."""

import datetime as dt
import json
import uuid

from structlog.testing import capture_logs

from tests.workloads.records import REPORTER
from workloads.collection import FailureReason
from workloads.collector.database import DatabaseDestination
from workloads.collector.errors import UnreachableError
from workloads.collector.messages import report_line, trouble_lines
from workloads.collector.sync import Synced
from workloads.collector.trouble_notifier import publish_failure
from workloads.collector.troubles import Trouble
from workloads.reporting.reports import Applied

SYNCED = Synced(complete=False, applied=Applied(1, 2, 3, 4), seconds=0.25)
TROUBLE = Trouble(
    resource="pods",
    failures=3,
    since=dt.datetime(2026, 11, 22, 10, 0, tzinfo=dt.UTC),
    reason=FailureReason.UNREACHABLE,
    error="no route",
)


def test_a_report() -> None:
    printed = json.loads(report_line("c", SYNCED, as_json=True))

    assert (printed["cluster"], printed["report"], printed["deleted"]) == ("c", "delta", 3)
    assert report_line("c", SYNCED, as_json=False).startswith("c: 1 created, 2 updated, 3 deleted")


def test_troubles_are_described() -> None:
    (printed,) = map(json.loads, trouble_lines("c", [TROUBLE], as_json=True))

    assert printed["cluster"] == "c"
    assert printed["troubles"][0]["since"] == "2026-11-22T10:00:00+00:00"
    assert trouble_lines("c", [TROUBLE], as_json=False) == [
        "c: not reported, pods failed 3 times since 10:00:00 UTC: no route"
    ]
    assert trouble_lines("c", [], as_json=False) == ["c: watch restored"]


def test_a_failure_of_a_cluster_that_was_deleted_is_logged(db: None) -> None:
    with capture_logs() as logged:
        publish_failure(DatabaseDestination(uuid.uuid4(), REPORTER), UnreachableError("no route"))

    assert [line["event"] for line in logged] == ["failure_not_recorded"]
