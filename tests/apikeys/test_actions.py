"""What the views cannot reach, because they look first."""

import datetime as dt

import pytest

from apikeys import actions
from apikeys.audit import Actor
from apikeys.errors import ApiKeyNotFound
from apikeys.models import ApiKey

ACTOR = Actor(name="test")


@pytest.mark.django_db
def test_a_key_that_is_none_of_these() -> None:
    keys = ApiKey.objects.all()

    with pytest.raises(ApiKeyNotFound):
        actions.change_api_key(keys=keys, key_id="key-1", changes={}, actor=ACTOR)
    with pytest.raises(ApiKeyNotFound):
        actions.rotate_api_key(keys=keys, key_id="key-1", grace_period=dt.timedelta(0), actor=ACTOR)
