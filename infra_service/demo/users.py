"""The accounts, tokens and keys of the demo data."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Final

from django.db import transaction

from apikeys import actions, audit
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, User
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND: Final = Actor.of_command("seed_demo")
_DAY: Final = dt.timedelta(days=1)
#: The age of the accounts and of the catalogue.
AGE: Final = 364 * _DAY
#: The accounts have no password, and the secrets of their credentials are discarded.
_PEOPLE: Final = {
    "demo-ada": "Ada (demo)",
    "demo-grace": "Grace (demo)",
    "demo-linus": "Linus (demo)",
    "demo-ci": "Pipelines (demo)",
}
_WRITER: Final = ("state:read", "state:write")
_ADMIN: Final = (*_WRITER, "state:admin", "state:secrets", "cluster:read")
_PERSONAL, _SERVICE = TokenKind.PERSONAL, TokenKind.SERVICE
#: Owner, name, kind, scopes, age in days, and days until expiry.
_TOKENS: Final = (
    ("demo-ada", "laptop", _PERSONAL, _ADMIN, 95, 170),
    ("demo-grace", "laptop", _PERSONAL, _ADMIN, 95, 24),
    ("demo-linus", "laptop", _PERSONAL, _WRITER, 95, 6),
    ("demo-ci", "pipeline", _SERVICE, _WRITER, 95, 9),
    ("demo-ci", "dashboard that was never built", _SERVICE, ("cluster:read",), 88, None),
)  # fmt: skip
_KEYS: Final = (
    ("demo-ci", "deployments", ("apikey:write", *_WRITER), 363, 2),
    ("demo-ada", "cost report", ("apikey:write", "state:read"), 80, 10),
    ("demo-grace", "drift detection", ("apikey:write", "state:read"), 64, 26),
    ("demo-linus", "migration of 2025", ("apikey:write", *_WRITER), 300, None),
)  # fmt: skip
#: The names of the tokens in the state histories.
_AT_WORK: Final = ("laptop", "pipeline")


def load_users(now: dt.datetime) -> tuple[list[Actor], Counter[str]]:
    """Create missing users with their tokens and keys.

    Return the actors that write states, and the number of new rows per kind.
    """
    created: Counter[str] = Counter()
    with transaction.atomic():
        users = {name: _user(name, shown, now, created) for name, shown in _PEOPLE.items()}
        writers = _load_tokens(users, now, created)
        _load_keys(users, now, created)
    return writers, created


def _user(name: str, shown: str, now: dt.datetime, created: Counter[str]) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        made = command_at(now - AGE)
        user = User.objects.create_user(name, display_name=shown, date_joined=made.now())
        audit.authorize_and_record(made, "user.create", user.pk, name=name)
        created["users"] += 1
    return user


def _load_tokens(users: Mapping[str, User], now: dt.datetime, created: Counter[str]) -> list[Actor]:
    writers: list[Actor] = []
    for owner, name, kind, scopes, age, days in _TOKENS:
        token = AccessToken.objects.filter(created_by=users[owner], name=name).first()
        if token is None:
            token, _secret = actions.issue_access_token(
                kind=kind,
                user=users[owner],
                name=name,
                scopes=scopes,
                expires_at=None if days is None else now + days * _DAY,
                actor=command_at(now - age * _DAY),
            )
            created["access_tokens"] += 1
        if name in _AT_WORK:
            owner_id = users[owner].pk
            address = f"192.0.2.{10 + len(writers)}"
            writers.append(Actor(name=owner, user_id=owner_id, token_id=token.pk, address=address))
    return writers


def _load_keys(users: Mapping[str, User], now: dt.datetime, created: Counter[str]) -> None:
    for owner, name, scopes, age, days in _KEYS:
        if ApiKey.objects.filter(created_by=users[owner], name=name).exists():
            continue
        key, _secret = actions.create_api_key(
            user_id=users[owner].pk,
            name=name,
            scopes=scopes,
            expires_at=None if days is None else now + days * _DAY,
            actor=command_at(now - age * _DAY),
        )
        created["api_keys"] += 1
        if days is not None:
            ApiKey.objects.touch(key.pk, now - days * dt.timedelta(hours=1), "192.0.2.17")


def command_at(moment: dt.datetime) -> Actor:
    """Return the command as an actor at a time in the past."""
    return Actor(name=COMMAND.name, at=moment)
