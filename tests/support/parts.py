"""``--part``: select the tests that the gate runs on this database.

``make test`` has two parts. A test that uses the database in its own process (the fixture ``db``)
runs in both: on PostgreSQL with all its cases, on SQLite with the first case, because further cases
execute the same statements. All other tests run once, on PostgreSQL; documents are walked with
SQLite, like their readers. The mark ``both`` runs all cases on both databases: for cases with
different statements or branches, and where SQLite differs.
"""

from __future__ import annotations

import pytest
from django.db import connection

from tests.support.installation import ROOT

_DOCUMENTS = ROOT / "tests" / "docs"


def is_in_part(item: pytest.Item) -> bool:
    """Return whether the part on this database runs it."""
    on_sqlite = connection.vendor == "sqlite"
    if _DOCUMENTS in item.path.parents:
        return on_sqlite
    if not on_sqlite or _meets_both(item):
        return True
    return _uses_database(item) and not (is_repetition(item) or item.get_closest_marker("long"))


def is_repetition(item: pytest.Item) -> bool:
    """Return whether it executes the statements of the test's first case, with other values."""
    return _uses_database(item) and not (_is_first_case(item) or _meets_both(item))


def _meets_both(item: pytest.Item) -> bool:
    """Return whether it is marked ``both``, or skips itself on one of the databases."""
    return any(item.get_closest_marker(name) for name in ("both", "skipif"))


def _uses_database(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    return "db" in item.fixturenames or item.get_closest_marker("django_db") is not None


def _is_first_case(item: pytest.Item) -> bool:
    """Return whether it has the first value of each of its parameters, if any."""
    case = getattr(item, "callspec", None)
    return case is None or not any(case.indices.values())
