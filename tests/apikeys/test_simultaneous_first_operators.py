"""Two replicas create the first operator at the same moment."""

from __future__ import annotations

import pytest
from django.db import connection

from apikeys.actions import create_first_operator
from apikeys.actors import Actor
from apikeys.models import User
from tests.support.committed import db, twice_at_once  # noqa: F401 - commits, in place of pytest-django's

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)


def test_one_of_them_gets_the_secrets(db: None) -> None:  # noqa: F811
    made = twice_at_once(lambda: create_first_operator(Actor.of_command("test")))

    assert [one is None for one in made].count(True) == 1
    assert User.objects.get().username == "operator"
