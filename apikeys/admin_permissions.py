"""Checks that people in the admin cannot grant or obtain permissions beyond their own.

Django reports no permissions for an inactive user. A check that relied on Django's answer would let
any staff member take over a deactivated user. These functions compare the stored permissions
instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db.models import Q

if TYPE_CHECKING:
    from django.contrib.auth.models import Group
    from django.db.models import Model, QuerySet

    from apikeys.models import User


#: Models without an admin page that other pages show.
_SHOWN: Final = ("change_history.Change", "infra_service.HousekeepingPart")


def models_on_pages() -> list[type[Model]]:
    """Return the models that the admin shows. Permissions of other models have no effect."""
    admin.autodiscover()  # commands do not load the pages
    return [*admin.site._registry, *map(apps.get_model, _SHOWN)]


def may_change_user(person: User, user: User) -> bool:
    """Return whether the person has all permissions of the user, even if the user is inactive."""
    if person.is_superuser:
        return True
    stored = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return not user.is_superuser and _holds(person, stored)


def grantable(person: User) -> QuerySet[Permission]:
    """Return the permissions that the person has, and may therefore grant."""
    if person.is_superuser:
        return Permission.objects.all()
    stored = Permission.objects.filter(Q(user=person) | Q(group__user=person))
    return Permission.objects.filter(pk__in=stored.values("pk"))


def may_grant_group(person: User, group: Group) -> bool:
    """Return whether the person has all permissions of the group."""
    return person.is_superuser or _holds(person, group.permissions.all())


def _holds(person: User, permissions: QuerySet[Permission]) -> bool:
    pairs = permissions.order_by().values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in pairs} <= person.get_all_permissions()
