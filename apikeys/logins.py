"""Signals of logins: the length of a session; logins, logouts and superusers in the audit log."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver

from apikeys import audit
from apikeys.actors import Actor, current_actor
from apikeys.models import User
from apikeys.models.users import superuser_created
from infra_service.lib.api.limits import Limit, limiter

if TYPE_CHECKING:
    from django.http import HttpRequest

log = structlog.get_logger("infra_service.logins")

#: The length of a session. A sign-on reads the groups of a user only once per session.
_SESSION: Final = dt.timedelta(hours=12)
# Failures can come from many addresses. Above this rate per minute, only the log records them.
_RECORDED_FAILURES: Final = Limit("login_failures", "all", 60)


@receiver(user_logged_in)
def limit_session(request: HttpRequest, **_kwargs: Any) -> None:
    """Let the session expire at a fixed time, independent of later changes to the session."""
    request.session.set_expiry(_SESSION)


@receiver(user_logged_in)
def record_login(request: HttpRequest, user: User, **_kwargs: Any) -> None:
    audit.authorize_and_record(Actor.of_person(request, user), "user.login", user.pk)


@receiver(user_logged_out)
def record_logout(request: HttpRequest, user: User | None, **_kwargs: Any) -> None:
    """Record a logout, unless the session had already expired and has no user."""
    if user is not None:
        audit.authorize_and_record(Actor.of_person(request, user), "user.logout", user.pk)


@receiver(user_login_failed)
def record_failure(
    credentials: dict[str, Any], request: HttpRequest | None = None, **_kwargs: Any
) -> None:
    """Record a failed login. Omit the name of an unknown user, because it may be a password."""
    name = str(credentials.get("username", ""))
    user = None if "\0" in name else User.objects.filter(username=name).first()
    fields = {} if user is None else {"name": user.username}
    if _exceeds_recorded_failures("login_failed", **fields):
        return
    actor = Actor(name="") if request is None else Actor.of_person(request)
    audit.authorize_and_record(
        actor, "user.login_failed", "" if user is None else user.pk, **fields
    )


@receiver(superuser_created)
def record_superuser(user: User, **_kwargs: Any) -> None:
    """Record a superuser and its creator. An error rolls back the creation."""
    made = {"name": user.username, "is_superuser": True}
    audit.authorize_and_record(current_actor(), "user.create", user.pk, **made)


def record_refusal(
    request: HttpRequest, reason: str, user: User | None = None, **details: Any
) -> None:
    """Record a rejected sign-on, with its user if the identity is known."""
    fields = {"reason": reason, **details, **({} if user is None else {"name": user.username})}
    if not _exceeds_recorded_failures("login_refused", **fields):
        pk = "" if user is None else user.pk
        audit.authorize_and_record(Actor.of_person(request), "user.login_refused", pk, **fields)


def _exceeds_recorded_failures(event: str, **fields: Any) -> bool:
    """Return whether this minute has too many failures to record more. If so, log a warning."""
    if limiter().hit(_RECORDED_FAILURES) is None:
        return False
    log.warning(event, **fields)
    return True
