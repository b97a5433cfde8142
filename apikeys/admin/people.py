"""Users and groups. Nobody gives rights that they have not, nor touches who has more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.urls import reverse

from apikeys import audit
from apikeys.admin_base import KeysetAdmin
from apikeys.audit import Actor
from apikeys.models import User

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    UserChangeFormOfOurs = UserChangeForm[User]
    UserAdminOfOurs = DjangoUserAdmin[User]
else:
    UserChangeFormOfOurs, UserAdminOfOurs = UserChangeForm, DjangoUserAdmin

admin.site.unregister(Group)


class AuditedAdmin(KeysetAdmin):
    """Writes to the audit trail what Django writes to its own log."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record that it was created."""
        self._record(request, obj, "create", message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record which fields were changed; their values are not in the message."""
        self._record(request, obj, "change", message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Record each that is about to be deleted."""
        for obj in queryset:
            self._record(request, obj, "delete", [])
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, obj: Any, what: str, changes: Any) -> None:
        action = f"{self.opts.model_name}.{what}"
        audit.record(Actor.of_person(request), action, obj.pk, name=str(obj), changes=changes)


class UserForm(UserChangeFormOfOurs):
    """A user, with the groups that the person at work may give."""

    person: User

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "groups" in self.fields:  # it is not for who may only view
            self.fields["groups"].widget.can_add_related = False

    def clean_groups(self) -> Any:
        """Refuse a group that may do what the person may not."""
        groups = self.cleaned_data["groups"]
        had = set(self.instance.groups.all())
        for group in groups:
            if group not in had and not _holds(self.person, _permissions_of(group)):
                raise forms.ValidationError(f"You may not give {group}: it may do more than you.")
        return groups


@admin.register(User)
class UserAdmin(AuditedAdmin, UserAdminOfOurs):
    """People and machine accounts. Who has keys cannot be deleted, but be made inactive."""

    form = UserForm
    page_key = ("username",)
    list_display = ("username", "display_name", "email", "is_active", "is_staff")
    list_filter = ()
    search_fields = ("username",)
    search_help_text = "The beginning of a user name."
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "display_name", "email", "has_password")}),
        ("Permissions", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("has_password", "last_login", "date_joined")

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find by the beginning of the name, which has an index."""
        term = search_term.strip()
        return queryset.filter(username__startswith=term), False

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002 - Django's signature
        **kwargs: Any,
    ) -> Any:
        """Tell the form who is at work."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.person = request.user
        return form

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Offer the groups as boxes, which a keyboard can tick."""
        if db_field.name == "groups":
            kwargs["widget"] = forms.CheckboxSelectMultiple()
            kwargs["help_text"] = ""
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, _obj: Any = None) -> tuple[str, ...]:
        """Only superusers make superusers."""
        more = () if getattr(request.user, "is_superuser", False) else ("is_superuser",)
        return (*self.readonly_fields, *more)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Refuse to change somebody who may do more: their password would be theirs to set."""
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or _holds(request.user, obj.get_all_permissions(), obj))

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Refuse: keys, tokens and the trail speak of them."""
        return False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Offer to set a password to who may."""
        user = context.get("original")
        if user is not None and self.has_change_permission(request, user):
            url = reverse("admin:auth_user_password_change", args=(user.pk,))
            context["tools"] = [{"tool": {"label": "Set the password"}, "url": url}]
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="password", boolean=True)
    def has_password(self, user: User) -> bool:
        """Whether they can log in here; the hash is never shown."""
        return user.has_usable_password()


@admin.register(Group)
class GroupAdmin(AuditedAdmin, DjangoGroupAdmin):
    """What people may do here; ``setup_groups`` makes the three that this service comes with."""

    page_key = ("name",)
    list_display = ("name",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only superusers."""
        return bool(getattr(request.user, "is_superuser", False)) and super().has_delete_permission(
            request, obj
        )


def _permissions_of(group: Group) -> set[str]:
    pairs = group.permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{name}" for app, name in pairs}


def _holds(person: Any, permissions: set[str], other: User | None = None) -> bool:
    if person.is_superuser:
        return True
    return not (other is not None and other.is_superuser) and permissions <= (
        person.get_all_permissions()
    )
