"""docs/reference/workload-health.md agrees with the code."""

import re
from pathlib import Path

import pytest

from workloads.kubernetes.case import GRACE, OBSERVATION_DELAY, RESTART_WINDOW
from workloads.kubernetes.containers import FAILING_REASONS, UNNAMED_FAILURE
from workloads.kubernetes.facts import STARTING_REASONS
from workloads.kubernetes.health import HealthStatus, Reason
from workloads.kubernetes.tally import PodTally

from .test_health import CASES

DOCUMENT = (Path(__file__).parents[3] / "docs/reference/workload-health.md").read_text()
ROWS = {
    int(number): (status, reason)
    for number, status, reason in re.findall(
        r"^\| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", DOCUMENT, re.MULTILINE
    )
}


@pytest.mark.parametrize(
    "reason", sorted({*Reason, *FAILING_REASONS, *STARTING_REASONS, UNNAMED_FAILURE})
)
def test_document_names_every_reason(reason: str) -> None:
    assert f"`{reason}`" in DOCUMENT


@pytest.mark.parametrize("status", sorted(HealthStatus))
def test_document_names_every_status(status: str) -> None:
    assert f"`{status}`" in DOCUMENT


def test_document_lists_every_rule_once() -> None:
    assert list(ROWS) == list(range(1, 22))


@pytest.mark.parametrize("case", CASES)
def test_rule_matches_its_documented_row(
    case: tuple[int, object, PodTally, HealthStatus, str],
) -> None:
    number, _, _, status, reason = case
    row_status, row_reason = ROWS[number]
    assert f"`{status}`" in row_status
    code = reason.partition(":")[0]
    handed_on = "reason of" in row_reason or "cause" in row_reason
    assert f"`{code}`" in row_reason or handed_on or (not code and row_reason.strip() == "empty")


def test_document_has_the_intervals() -> None:
    for interval in (GRACE, RESTART_WINDOW, OBSERVATION_DELAY):
        assert f"{interval.seconds} s" in DOCUMENT
