"""The limit on the reports that a process works on at once."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from tests.e2e.together import in_threads
from workloads.reporting import slots as module
from workloads.reporting.errors import ClusterBusy, TooManyReports
from workloads.reporting.slots import ReportSlots

A, B, C = (uuid.UUID(int=n) for n in range(3))
LONG = 60.0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 0.01)


def test_turns_can_be_taken_repeatedly() -> None:
    report_slots = ReportSlots()
    for _ in range(3):
        with report_slots.acquire(A):
            pass


def test_another_report_of_the_same_cluster(impatient: None) -> None:
    report_slots = ReportSlots()

    with report_slots.acquire(A):
        with pytest.raises(ClusterBusy), report_slots.acquire(A):
            pass
        with report_slots.acquire(B):
            pass
    with report_slots.acquire(A):
        pass


def test_number_of_concurrent_reports_is_limited(impatient: None) -> None:
    report_slots = ReportSlots(at_work=2)

    with (
        report_slots.acquire(A),
        report_slots.acquire(B),
        pytest.raises(TooManyReports),
        report_slots.acquire(C),
    ):
        pass
    with report_slots.acquire(C):
        pass


def test_a_turn_ends_with_an_error(impatient: None) -> None:
    report_slots = ReportSlots()

    with pytest.raises(ZeroDivisionError), report_slots.acquire(A):
        raise ZeroDivisionError
    with report_slots.acquire(A):
        pass


def test_waiting_report_gets_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", LONG)
    report_slots, begun, order = ReportSlots(), threading.Event(), []

    def first() -> None:
        with report_slots.acquire(A):
            begun.set()
            while not report_slots._waiting:
                time.sleep(0.01)
            order.append("first")

    def second() -> None:
        begun.wait(LONG)
        with report_slots.acquire(A):
            order.append("second")

    in_threads([first, second])

    assert order == ["first", "second"]


def test_reports_above_the_limit_are_rejected_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", LONG)
    report_slots, refused, served = ReportSlots(waiting=2), threading.Event(), []

    def wait() -> None:
        try:
            with report_slots.acquire(A):
                served.append(1)
        except ClusterBusy:
            refused.set()

    with report_slots.acquire(A):
        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        # The third does not wait: it is rejected while the others do.
        assert refused.wait(LONG)
        assert not served
    for thread in threads:
        thread.join()

    assert len(served) == 2
