"""The limit on the reports that a process works on at once."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from tests.e2e.together import in_threads
from workloads.reporting import turns as module
from workloads.reporting.errors import ClusterBusy, TooManyReports
from workloads.reporting.turns import Turns

A, B, C = (uuid.UUID(int=n) for n in range(3))
PATIENT = 60.0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)


def test_turns_can_be_taken_repeatedly() -> None:
    turns = Turns()
    for _ in range(3):
        with turns.take(A):
            pass


def test_another_report_of_the_same_cluster(impatient: None) -> None:
    turns = Turns()

    with turns.take(A):
        with pytest.raises(ClusterBusy), turns.take(A):
            pass
        with turns.take(B):
            pass
    with turns.take(A):
        pass


def test_no_more_than_so_many_at_once(impatient: None) -> None:
    turns = Turns(at_work=2)

    with turns.take(A), turns.take(B), pytest.raises(TooManyReports), turns.take(C):
        pass
    with turns.take(C):
        pass


def test_a_turn_ends_with_an_error(impatient: None) -> None:
    turns = Turns()

    with pytest.raises(ZeroDivisionError), turns.take(A):
        raise ZeroDivisionError
    with turns.take(A):
        pass


def test_waiting_report_gets_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", PATIENT)
    turns, begun, order = Turns(), threading.Event(), []

    def first() -> None:
        with turns.take(A):
            begun.set()
            while not turns._waiting:
                time.sleep(0.01)
            order.append("first")

    def second() -> None:
        begun.wait(PATIENT)
        with turns.take(A):
            order.append("second")

    in_threads([first, second])

    assert order == ["first", "second"]


def test_reports_above_the_limit_are_rejected_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", PATIENT)
    turns, refused, served = Turns(waiting=2), threading.Event(), []

    def wait() -> None:
        try:
            with turns.take(A):
                served.append(1)
        except ClusterBusy:
            refused.set()

    with turns.take(A):
        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        # The third does not wait: it is rejected while the others do.
        assert refused.wait(PATIENT)
        assert not served
    for thread in threads:
        thread.join()

    assert len(served) == 2
