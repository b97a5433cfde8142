"""The admin of groups. Staff can grant only permissions that they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType

from apikeys.admin.audited import AuditedAdmin, person_of
from apikeys.admin.choices import CheckboxesByGroup, PermissionChoices
from apikeys.admin_permissions import grantable, may_grant_group, models_on_pages
from infra_service.lib.admin.shown_values import ShownValues

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import Permission
    from django.http import HttpRequest

    from apikeys.models import User

    GroupFormOfOurs = forms.ModelForm[Group]
else:
    GroupFormOfOurs = forms.ModelForm

admin.site.unregister(Group)


class GroupForm(ShownValues, GroupFormOfOurs):
    """A form for a group, with the permissions that the logged-in person can grant.

    The group keeps the permissions that the form does not offer.
    """

    person: User

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields.get("permissions")
        if field is None:  # with view permission only
            return
        types = ContentType.objects.get_for_models(*models_on_pages())
        offered = grantable(self.person).filter(content_type__in=types.values())
        field.queryset = offered
        field.error_messages["invalid_choice"] = (
            "You cannot grant permissions that you do not have."
        )
        self.kept: list[Permission] = []
        if self.instance.pk is not None:
            self.kept = list(self.instance.permissions.exclude(pk__in=offered.values("pk")))
            self.initial["permissions"] = list(self.instance.permissions.filter(pk__in=offered))

    def clean_permissions(self) -> list[Permission]:
        """Return the chosen permissions and the permissions that the form does not offer."""
        return [*self.merged("permissions"), *self.kept]


@admin.register(Group)
class GroupAdmin(AuditedAdmin, DjangoGroupAdmin):
    """The admin of groups; ``setup_groups`` creates the three default groups."""

    form = GroupForm
    page_key = ("name",)
    list_display = ("name",)
    orders: ClassVar[Any] = {"name": ("name",)}
    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Offer checkboxes, because Django's two-list widget has no accessible names."""
        given = {"form_class": PermissionChoices, "widget": CheckboxesByGroup(), "help_text": ""}
        return super().formfield_for_manytomany(db_field, request, **{**given, **kwargs})

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_grant_group(person_of(request), obj))

    def get_deleted_objects(
        self, objs: Iterable[Group], _request: HttpRequest
    ) -> tuple[list[Any], dict[Any, int], set[str], list[str]]:
        """Return only the groups, because their permissions would add a line each."""
        names = [str(group) for group in objs]
        return names, {"groups": len(names)}, set(), []

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(getattr(request.user, "is_superuser", False)) and super().has_delete_permission(
            request, obj
        )
