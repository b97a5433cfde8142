"""What people may do in the admin, and the one rule: nobody gives, or takes over, what they lack.

Django computes the permissions of an inactive user as none, and so whoever was deactivated would be
free for all. Here a user holds what is stored of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import Permission
from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import Group
    from django.db.models import QuerySet

    from apikeys.models import User


def may_change_user(person: User, user: User) -> bool:
    """Whether the person holds all that the user does, active or not."""
    if person.is_superuser:
        return True
    stored = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return not user.is_superuser and _holds(person, stored)


def may_give(person: User, permissions: Collection[Permission]) -> bool:
    """Whether the person holds all of these."""
    return person.is_superuser or _holds(
        person, Permission.objects.filter(pk__in=[permission.pk for permission in permissions])
    )


def may_give_group(person: User, group: Group) -> bool:
    """Whether the person holds all that the group does."""
    return person.is_superuser or _holds(person, group.permissions.all())


def _holds(person: User, permissions: QuerySet[Permission]) -> bool:
    pairs = permissions.order_by().values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in pairs} <= person.get_all_permissions()
