"""The callers that tokens represent, and the exact time of their expiry."""

import datetime as dt
from types import SimpleNamespace

import pytest

from apikeys import callers
from apikeys.callers import find_caller
from apikeys.errors import CredentialsInvalid, TokenExpired
from apikeys.models import AccessToken, ApiKey
from apikeys.querysets import LAST_USED_RESOLUTION
from tests.apikeys.conftest import NOW, KeyOwner
from tests.conftest import ClientWith

A_MOMENT = dt.timedelta(microseconds=1)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> dt.datetime:
    """Freeze the time that authentication uses."""
    moment = NOW()
    monkeypatch.setattr(callers, "timezone", SimpleNamespace(now=lambda: moment))
    return moment


def test_the_end_is_the_first_moment_without(owner: KeyOwner, now: dt.datetime) -> None:
    ApiKey.objects.update(expires_at=now + A_MOMENT)
    assert find_caller(owner.secret).expires_at == now + A_MOMENT

    ApiKey.objects.update(expires_at=now)
    with pytest.raises(TokenExpired):
        find_caller(owner.secret)


def test_use_is_recorded_a_minute_after_the_previous_use(owner: KeyOwner, now: dt.datetime) -> None:
    for ago, noted in ((LAST_USED_RESOLUTION - A_MOMENT, False), (LAST_USED_RESOLUTION, True)):
        ApiKey.objects.update(last_used_at=now - ago)
        find_caller(owner.secret)
        assert (owner.key.last_used_at == now) is noted


def test_a_token_of_the_moment_of_a_rotation_is_retired(owner: KeyOwner) -> None:
    secret = owner.send(
        "POST", "/v1/access-tokens", {"name": "ci", "kind": "PERSONAL", "scopes": ["state:read"]}
    ).json()["secret"]
    minted = AccessToken.objects.get()
    for after, is_retired in ((dt.timedelta(0), True), (-A_MOMENT, False)):
        ApiKey.objects.update(rotated_at=minted.created_at + after)
        assert find_caller(secret).is_retired is is_retired


def test_an_issued_token_is_never_retired(client_with: ClientWith) -> None:
    assert find_caller(client_with("state:read").secret).is_retired is False


def test_token_prefix_must_match_the_stored_kind(client_with: ClientWith) -> None:
    secret = client_with("state:read").secret
    AccessToken.objects.update(kind="SERVICE")

    with pytest.raises(CredentialsInvalid):
        find_caller(secret)
