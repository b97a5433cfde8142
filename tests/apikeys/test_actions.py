"""Checks of the actions that the views perform earlier, so that requests cannot reach them."""

import datetime as dt

import pytest

from apikeys import actions
from apikeys.actors import Actor
from apikeys.errors import ApiKeyNotFound, GracePeriodOutOfRange
from apikeys.models import ApiKey

ACTOR = Actor(name="test")


@pytest.mark.django_db
def test_key_outside_the_queryset_is_missing() -> None:
    keys = ApiKey.objects.all()

    with pytest.raises(ApiKeyNotFound):
        actions.change_api_key(keys=keys, key_id="key-1", changes={}, actor=ACTOR)
    with pytest.raises(ApiKeyNotFound):
        actions.rotate_api_key(keys=keys, key_id="key-1", grace_period=dt.timedelta(0), actor=ACTOR)


@pytest.mark.parametrize("beyond", [dt.timedelta(seconds=-1), dt.timedelta(days=7, microseconds=1)])
def test_grace_period_is_bounded_for_every_caller(beyond: dt.timedelta) -> None:
    with pytest.raises(GracePeriodOutOfRange) as refused:
        actions.rotate_api_key(
            keys=ApiKey.objects.none(), key_id="key-1", grace_period=beyond, actor=ACTOR
        )

    assert refused.value.field_violations == [
        {
            "field": "grace_period",
            "description": "Choose 0 to 604800 seconds.",
            "reason": "RANGE",
        }
    ]
