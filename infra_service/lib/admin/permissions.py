"""Check the permissions of a user on a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_permission_codename

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, PermissionsMixin


def may_view(user: PermissionsMixin | AnonymousUser, model: Any) -> bool:
    """Return whether the user may view all objects of the model."""
    return user.has_perm(f"{model._meta.app_label}.{get_permission_codename('view', model._meta)}")
