"""The admin of groups. Staff can give only permissions that they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.models import Group

from apikeys.admin.audited import AuditedAdmin, person_of
from apikeys.admin.choices import CheckboxesByGroup, PermissionChoices
from apikeys.people import may_grant, may_grant_group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest

    from apikeys.models import User

    GroupFormOfOurs = forms.ModelForm[Group]
else:
    GroupFormOfOurs = forms.ModelForm

admin.site.unregister(Group)


class GroupForm(GroupFormOfOurs):
    """A group, with the permissions that the logged-in person can give."""

    person: User

    def clean_permissions(self) -> Any:
        """Refuse a permission that the person lacks."""
        permissions = self.cleaned_data["permissions"]
        if not may_grant(self.person, permissions):
            raise forms.ValidationError("You cannot grant permissions that you do not have.")
        return permissions


@admin.register(Group)
class GroupAdmin(AuditedAdmin, DjangoGroupAdmin):
    """The admin of groups; ``setup_groups`` creates the three default groups."""

    form = GroupForm
    page_key = ("name",)
    list_display = ("name",)
    orders: ClassVar[Any] = {"name": ("name",)}
    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Offer checkboxes: Django's two-list widget has no accessible names."""
        given = {"form_class": PermissionChoices, "widget": CheckboxesByGroup(), "help_text": ""}
        return super().formfield_for_manytomany(db_field, request, **{**given, **kwargs})

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_grant_group(person_of(request), obj))

    def get_deleted_objects(
        self, objs: Iterable[Group], _request: HttpRequest
    ) -> tuple[list[Any], dict[Any, int], set[str], list[str]]:
        """Return the groups without a line for each of their permissions."""
        names = [str(group) for group in objs]
        return names, {"groups": len(names)}, set(), []

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(getattr(request.user, "is_superuser", False)) and super().has_delete_permission(
            request, obj
        )
