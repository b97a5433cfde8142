"""Transactions that the database asks the service to retry."""

import pytest
from django.db import OperationalError

from infra_service.lib.database import retries


class RefusalError(Exception):
    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate


class Refusing:
    """An action that the database refuses this many times before it succeeds."""

    def __init__(self, times: int, sqlstate: str) -> None:
        self.times, self.sqlstate, self.calls = times, sqlstate, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise OperationalError("could not serialize access") from RefusalError(self.sqlstate)
        return "done"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_PAUSES", (0, 0, 0))


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
def test_it_is_repeated(sqlstate: str) -> None:
    action = Refusing(3, sqlstate)

    assert retries.retrying(action)() == "done"
    assert action.calls == 4


def test_retries_are_limited() -> None:
    action = Refusing(9, "40001")

    with pytest.raises(OperationalError):
        retries.retrying(action)()
    assert action.calls == 4


def test_other_errors_are_the_callers() -> None:
    action = Refusing(1, "57P01")

    with pytest.raises(OperationalError):
        retries.retrying(action)()
    assert action.calls == 1


def test_transaction_is_not_retried(db: None) -> None:
    action = Refusing(1, "40001")

    with pytest.raises(OperationalError):
        retries.retrying(action)()
    assert action.calls == 1
