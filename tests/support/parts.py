"""``--part``: what the part of the gate on this database runs, and where coverage is measured.

``make test`` has two parts. A test that asks for the database in its own process (the fixture
``db``) runs in both: on PostgreSQL with all its cases, on SQLite with the first of them, because
the others make the same statements. All other tests run once, on PostgreSQL; documents are walked
with SQLite, as their readers begin. The mark ``both`` has all cases run on both: where they make
statements or take branches of their own, and where SQLite differs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest
from coverage import Coverage
from django.db import connection

from tests.support.installation import ROOT

# With it coverage begins in a process of its own accord.
_MEASURED = "COVERAGE_PROCESS_CONFIG"
_DOCUMENTS = ROOT / "tests" / "docs"


def is_in_part(item: pytest.Item) -> bool:
    """Whether the part on this database runs it."""
    on_sqlite = connection.vendor == "sqlite"
    if _DOCUMENTS in item.path.parents:
        return on_sqlite
    if not on_sqlite or _meets_both(item):
        return True
    return _uses_database(item) and not (is_repetition(item) or item.get_closest_marker("long"))


def is_repetition(item: pytest.Item) -> bool:
    """Whether its statements are, but for their values, those of the test's first case."""
    return _uses_database(item) and not (_is_first_case(item) or _meets_both(item))


def measured_as(item: pytest.Item) -> contextlib.AbstractContextManager[None]:
    """Measure what this test is measured for, while it runs.

    The processes that it starts are measured where it has the mark ``processes``: for what runs
    there alone, since all else is measured where the tests call it themselves.
    """
    if not _is_measured(item):
        return unmeasured()
    if item.get_closest_marker("processes"):
        return contextlib.nullcontext()
    return unmeasured_processes()


@contextlib.contextmanager
def unmeasured() -> Iterator[None]:
    """Measure nothing meanwhile, neither here nor in processes that are started.

    A process of pytest-xdist has two measurements: one that began with Python, as in all children,
    and pytest-cov's. If one ends, the other goes on.
    """
    stopped = []
    with unmeasured_processes():
        while (measuring := Coverage.current()) is not None:
            measuring.stop()
            stopped.append(measuring)
        try:
            yield
        finally:
            for measuring in reversed(stopped):
                measuring.start()


@contextlib.contextmanager
def unmeasured_processes() -> Iterator[None]:
    """Start processes that measure nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(_MEASURED, raising=False)
        yield


def measurement() -> dict[str, str]:
    """Return the variable with which a process is measured, if those of this test are."""
    return {name: told for name, told in os.environ.items() if name == _MEASURED}


def _is_measured(item: pytest.Item) -> bool:
    """Whether the coverage of this test is measured, for which it takes twice as long.

    It is measured on SQLite, where that takes less, and of what runs on PostgreSQL alone there.
    What is long mostly repeats one rule, whose lines other tests run too.
    """
    if item.get_closest_marker("long"):
        return False
    if connection.vendor == "sqlite" or item.get_closest_marker("skipif"):
        return True
    return not (_uses_database(item) or _meets_both(item))


def _meets_both(item: pytest.Item) -> bool:
    """Whether it is marked so, or skips itself on one of the databases."""
    return any(item.get_closest_marker(name) for name in ("both", "skipif"))


def _uses_database(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    return "db" in item.fixturenames or item.get_closest_marker("django_db") is not None


def _is_first_case(item: pytest.Item) -> bool:
    """Whether it has the first value of each of its parameters, which most tests have none of."""
    case = getattr(item, "callspec", None)
    return case is None or not any(case.indices.values())
