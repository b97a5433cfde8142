"""``--part``: select the tests that the gate runs on this database.

``make test`` has two parts. A test that asks for the database in its own process (the fixture
``db``) runs in both: on PostgreSQL with all its cases, on SQLite with the first of them, because
the others make the same statements. All other tests run once, on PostgreSQL; documents are walked
with SQLite, as their readers begin. The mark ``both`` has all cases run on both: where they make
statements or take branches of their own, and where SQLite differs.
"""

from __future__ import annotations

import pytest
from django.db import connection

from tests.support.installation import ROOT

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
