"""Accounts and permissions at sign-on, which follow the provider's claims each time."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import structlog
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from apikeys import audit
from apikeys.actors import Actor
from apikeys.models import User
from infra_service.lib.display_names import visible
from infra_service.sign_on.errors import SignOnRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

log = structlog.get_logger("infra_service.sign_on")

_NOT_IN_NAMES: Final = re.compile(r"[^\w.@+-]")
# Less than the column's 150 characters, so that a suffix can distinguish equal names.
_LONGEST_NAME: Final = 120
_LONGEST_DISPLAY_NAME: Final = 200
# The maximum number of names that a refusal lists on the page, in the log and in the audit log.
_MOST_NAMES: Final = 50


def admit_user(request: HttpRequest, claims: Mapping[str, Any]) -> User:
    """Return the user that the claims identify, with the permissions of the user's groups.

    The issuer and ``sub`` identify the user, because an email address or a name can be reassigned.
    A user without a mapped group loses all permissions, including in other sessions.

    Raises:
        SignOnRefusedError: no group is mapped, or the user is inactive in this service.
    """
    subject = claims["sub"]
    groups = _groups(claims)
    user = _known(subject)
    if user is None:
        if not groups:
            raise _without_group(claims)
        user = _registered(request, claims)
    if not user.is_active:
        raise SignOnRefusedError("inactive", user, subject)
    _set_rights(request, user, claims, groups)
    if not groups:
        raise _without_group(claims, user)
    return user


def signs_on(user: User) -> bool:
    """Return whether the user signs on at the provider."""
    found: bool = SocialAccount.objects.filter(user_id=user.pk).exists()
    return found


def _names_of_groups(claims: Mapping[str, Any]) -> list[str] | None:
    """Return the groups at the provider, or None if the claim is missing or contains no strings.

    Entries that are not strings are ignored, so that a single entry cannot remove all permissions
    of a person.
    """
    theirs = claims.get(settings.OIDC_GROUPS_CLAIM)
    theirs = [theirs] if isinstance(theirs, str) else theirs
    if not isinstance(theirs, list):
        return None
    names = [name for name in theirs if isinstance(name, str)]
    return names if names or not theirs else None


def _without_group(claims: Mapping[str, Any], user: User | None = None) -> SignOnRefusedError:
    """Return the refusal, with the received groups, or the claims if there is no groups claim."""
    theirs = _names_of_groups(claims)
    reason = "no_groups_claim" if theirs is None else "no_group"
    received = [_printable(name) for name in sorted(claims if theirs is None else theirs)]
    return SignOnRefusedError(reason, user, claims["sub"], received[:_MOST_NAMES])


def _printable(name: str) -> str:
    """Return a name without unprintable characters, shortened for the database."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return shown[:_LONGEST_NAME]


def _groups(claims: Mapping[str, Any]) -> list[Group]:
    ours: dict[str, str] = settings.OIDC_GROUP_MAP
    names = {ours[name] for name in _names_of_groups(claims) or () if name in ours}
    found = list(Group.objects.filter(name__in=names))
    if missing := sorted(names - {group.name for group in found}):
        log.error("sign_on_group_missing", groups=missing)  # setup_groups creates them
    return found


def _known(subject: str) -> User | None:
    account = (
        SocialAccount.objects.select_related("user")
        .filter(provider=settings.OIDC_ISSUER, uid=subject)
        .first()
    )
    found: User | None = None if account is None else account.user
    return found


def _registered(request: HttpRequest, claims: Mapping[str, Any]) -> User:
    """Return a new user at the first sign-on."""
    issuer, subject = settings.OIDC_ISSUER, claims["sub"]
    user = User(username=_free_name(claims), **_profile(claims))
    user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save()
            SocialAccount.objects.create(user=user, provider=issuer, uid=subject)
            audit.authorize_and_record(
                Actor.of_person(request, user),
                "user.create",
                user.pk,
                name=user.username,
                issuer=issuer,
                subject=subject,
            )
    except IntegrityError:
        if (other := _known(subject)) is None:  # another user with this name
            raise SignOnRefusedError("again", subject=subject) from None
        return other  # the same user, in another window
    return user


def _free_name(claims: Mapping[str, Any]) -> str:
    """Return the provider's user name, with a suffix if it is in use."""
    called = next(
        name for key in ("preferred_username", "email", "sub") if (name := _text(claims, key))
    )
    name = _NOT_IN_NAMES.sub("-", User.normalize_username(called))[:_LONGEST_NAME]
    if not User.objects.filter(username__iexact=name).exists():
        return name
    identity = f"{settings.OIDC_ISSUER}\n{claims['sub']}"
    return f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def _profile(claims: Mapping[str, Any]) -> dict[str, str]:
    """Return the display name and the email address, which do not identify the user."""
    email = _text(claims, "email")
    try:
        User._meta.get_field("email").run_validators(email)  # also of its length
    except ValidationError:
        email = ""
    return {"display_name": visible(_text(claims, "name"))[:_LONGEST_DISPLAY_NAME], "email": email}


def _text(claims: Mapping[str, Any], key: str) -> str:
    value = claims.get(key)
    if not isinstance(value, str):
        return ""
    # Databases cannot store NUL characters and lone surrogates, which JSON can contain.
    return value.replace("\0", "").encode(errors="replace").decode().strip()


@transaction.atomic
def _set_rights(
    request: HttpRequest, user: User, claims: Mapping[str, Any], groups: list[Group]
) -> None:
    """Update the user's profile and groups, and remove user permissions and superuser status."""
    given = {**_profile(claims), "is_staff": bool(groups), "is_superuser": False}
    changes = [name for name, value in given.items() if getattr(user, name) != value]
    if {group.pk for group in groups} != set(user.groups.values_list("pk", flat=True)):
        user.groups.set(groups)
        changes.append("groups")
    if user.user_permissions.exists():
        user.user_permissions.clear()
        changes.append("user_permissions")
    if not changes:
        return
    for name, value in given.items():
        setattr(user, name, value)
    user.save(update_fields=[*given])
    audit.authorize_and_record(
        Actor.of_person(request, user),
        "user.change",
        user.pk,
        name=user.username,
        changes=changes,
        groups=sorted(group.name for group in groups),
    )
