"""Positions in an ordered list. For lists see test_pagination.py and the admin tests."""

import datetime as dt
import json

import pytest
from django.core.exceptions import ValidationError

from apikeys.models import User
from infra_service.lib.database.keyset import beyond, columns_of, position_of, reversed_key


def test_integers_stay_integers() -> None:
    row = {"number": 5, "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}

    values = position_of(row, ["number", "at"])

    assert json.dumps(values) == '[5, "2026-01-01 00:00:00+00:00"]'


def test_pages_follow_both_directions() -> None:
    assert columns_of(("-id",)) == (["id"], True)
    assert reversed_key(("-id",)) == ["id"]
    assert reversed_key(("namespace", "name")) == ["-namespace", "-name"]
    assert reversed_key(("resource_id", "-id")) == ["-resource_id", "id"]
    assert reversed_key(()) == []


@pytest.mark.parametrize("position", [["x"], [], ["x", "y"]])
def test_invalid_position_is_rejected(position: list[str]) -> None:
    with pytest.raises((ValidationError, ValueError)):
        beyond(("-id",), position, User.objects.all())


def test_a_number_is_no_time() -> None:
    with pytest.raises(ValidationError):
        beyond(("date_joined",), [5], User.objects.all())
