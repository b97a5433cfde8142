from datetime import UTC, datetime

import pytest

from workloads.kubernetes.containers import FAILING_REASONS, container_facts, failing_reason
from workloads.kubernetes.facts import ContainerFacts

ENDED = datetime(2026, 11, 21, 1, 40, tzinfo=UTC)


@pytest.mark.parametrize("reason", sorted(FAILING_REASONS))
def test_known_waiting_reason_is_a_failure(reason: str) -> None:
    assert failing_reason("waiting", reason) == reason


@pytest.mark.parametrize("reason", ["SomethingBackOff", "ErrNovel", "PostStartHookError"])
def test_waiting_reason_of_known_form_is_a_failure(reason: str) -> None:
    assert failing_reason("waiting", reason) == reason


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", "", "Backoff"])
def test_other_waiting_reason_is_no_failure(reason: str) -> None:
    assert failing_reason("waiting", reason) == ""


@pytest.mark.parametrize(
    ("reason", "exit_code", "signal", "failing"),
    [
        ("Completed", 0, 0, ""),
        ("Error", 1, 0, "Error"),
        ("OOMKilled", 137, 0, "OOMKilled"),
        ("Killed", 0, 9, "Killed"),
        ("", 1, 0, "Error"),
        # Windows: STATUS_CONTROL_C_EXIT.
        ("Error", -1073741510, 0, "Error"),
    ],
)
def test_terminated_container_is_classified(
    reason: str, exit_code: int, signal: int, failing: str
) -> None:
    assert failing_reason("terminated", reason, exit_code, signal) == failing


def test_running_never_fails() -> None:
    assert failing_reason("running", "CrashLoopBackOff", 1, 9) == ""


def test_healthy_container_has_no_failure() -> None:
    assert container_facts(name="app", state="running", ready=True) == ContainerFacts(
        name="app", state="running", ready=True
    )


def test_crashing_container_is_failing() -> None:
    assert container_facts(
        name="app",
        state="waiting",
        reason="CrashLoopBackOff",
        restarts=3,
        last_reason="OOMKilled",
        last_finished_at=ENDED,
    ) == ContainerFacts(
        name="app",
        state="waiting",
        restarts=3,
        failing="CrashLoopBackOff",
        restarted_at=ENDED,
        out_of_memory=True,
    )


@pytest.mark.parametrize(("restarts", "finished"), [(0, ENDED), (1, None)])
def test_a_last_run_without_a_restart(restarts: int, finished: datetime | None) -> None:
    facts = container_facts(
        name="app",
        state="running",
        restarts=restarts,
        last_reason="OOMKilled",
        last_finished_at=finished,
    )
    assert (facts.restarted_at, facts.out_of_memory) == (None, False)


def test_completed_container_without_details_is_not_failing() -> None:
    quiet = container_facts(name="x", state="terminated", reason="Completed")

    assert (quiet.failing, quiet.ready, quiet.restarts) == ("", False, 0)
    assert failing_reason("terminated", "Completed") == ""
    found = container_facts(name="x", state="running", last_finished_at=ENDED)
    assert found.restarted_at is None


def test_a_single_restart_counts() -> None:
    found = container_facts(name="x", state="running", restarts=1, last_finished_at=ENDED)

    assert found.restarted_at == ENDED
