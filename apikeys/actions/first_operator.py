"""The first operator of an installation, with generated secrets."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db import IntegrityError, transaction

from apikeys import actors
from apikeys.actions.access_tokens import issue_access_token
from apikeys.models import User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    from apikeys.actors import Actor

USERNAME: Final = "operator"


class FirstSecrets(NamedTuple):
    """The password and the token of the first operator, which are shown once."""

    password: str
    token: str


@transaction.atomic
def create_first_operator(actor: Actor) -> FirstSecrets | None:
    """Create the superuser ``operator`` with a token; return None if the user exists."""
    existing = User.objects.filter(username=USERNAME)
    if existing.exists():
        return None
    password = secrets.token_urlsafe(12)
    try:
        with transaction.atomic(), actors.acting(lambda: actor):
            operator = User.objects.create_superuser(
                USERNAME, password=password, display_name="Operator"
            )
    except IntegrityError:
        if existing.exists():  # created by another process in the meantime
            return None
        raise
    _token, secret = issue_access_token(
        kind=TokenKind.PERSONAL,
        user=operator,
        name="first token",
        scopes=list(Scope),
        expires_at=None,
        actor=actor,
    )
    return FirstSecrets(password, secret)
