"""Two people deactivate the last two superusers at the same moment."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from apikeys.actions import deactivate_user
from apikeys.actors import Actor
from apikeys.models import User
from tests.support.committed import db, twice_at_once  # noqa: F401 - commits, in place of pytest-django's

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has a single writer"
)


def test_an_active_superuser_remains(db: None) -> None:  # noqa: F811
    users = [User.objects.create_superuser(name) for name in ("first", "second")]
    waiting = list(users)

    def deactivate() -> bool:
        try:
            return deactivate_user(user=waiting.pop(), actor=Actor.of_command("test"))
        except ValidationError:
            return False

    assert sorted(twice_at_once(deactivate)) == [False, True]
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1
