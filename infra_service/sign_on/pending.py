"""Logins between the password check and the second factor."""

from __future__ import annotations

import hmac
import time
from typing import TYPE_CHECKING, Final

from django.contrib.auth import get_backends
from django.contrib.auth.backends import ModelBackend

from apikeys.models import User

if TYPE_CHECKING:
    from django.http import HttpRequest

_PENDING: Final = "second_factor_of"
_SECONDS: Final = 300


def begin(request: HttpRequest, user: User, address: str) -> None:
    """Store the user and the requested page in the session, without logging in."""
    request.session.cycle_key()
    kept = [str(user.pk), user.get_session_auth_hash(), address, time.time()]
    request.session[_PENDING] = kept


def user_of(request: HttpRequest) -> User | None:
    """Return the user while the login is recent and the password is unchanged."""
    kept = request.session.get(_PENDING)
    if kept is None or time.time() - kept[3] > _SECONDS:
        return None
    (backend,) = (b for b in get_backends() if isinstance(b, ModelBackend))
    user = backend.get_user(kept[0])  # never an inactive user
    if not isinstance(user, User) or not user.is_staff:
        return None
    return user if hmac.compare_digest(user.get_session_auth_hash(), kept[1]) else None


def address_of(request: HttpRequest) -> str:
    """Return the requested page."""
    address: str = request.session[_PENDING][2]
    return address


def end(request: HttpRequest) -> None:
    """Remove the pending login."""
    request.session.pop(_PENDING, None)
