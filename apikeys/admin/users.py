"""The admin of users. Staff can grant only permissions that they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.http import HttpResponseRedirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from apikeys.actions import check_superuser_remains, revoke_credentials
from apikeys.actors import Actor
from apikeys.admin.audited import AuditedAdmin, person_of
from apikeys.admin.person_credentials import credentials_of
from apikeys.admin.reactivation import reactivation_notice
from apikeys.admin_permissions import may_change_user, may_grant_group
from apikeys.models import User
from infra_service.lib.admin.badges import badge
from infra_service.lib.admin.moments import moment_of
from infra_service.lib.admin.shown_values import ShownValues

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    UserChangeFormOfOurs = UserChangeForm[User]
    UserAdminOfOurs = DjangoUserAdmin[User]
else:
    UserChangeFormOfOurs, UserAdminOfOurs = UserChangeForm, DjangoUserAdmin

# The idle period for the list if OWNER_IDLE_DAYS sets no limit.
_IDLE_DAYS: Final = 90
# Label and help text of each permission's checkbox.
_RIGHTS: Final = {
    "is_active": (
        "Active",
        (
            "The service logs out inactive users and rejects their keys and tokens. "
            "Credentials that were not revoked work again when the user becomes active."
        ),
    ),
    "is_staff": ("Admin access", "The user's groups determine the permissions in the admin."),
    "is_superuser": ("Superuser", "Has every permission, regardless of groups."),
}


class UserForm(ShownValues, UserChangeFormOfOurs):
    """A form for a user that accepts only groups that the logged-in person can assign.

    The user keeps the values that the person did not change. Otherwise, a page that was opened
    before a deactivation would make the user active again.
    """

    person: User
    revoke_credentials = forms.BooleanField(
        label="Revoke their keys and tokens, and disable their policies and webhooks",
        required=False,
        initial=True,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "groups" in self.fields:  # absent with view permission only
            self.fields["groups"].widget.can_add_related = False

        for name, (label, help_text) in _RIGHTS.items():
            if name in self.fields:
                self.fields[name].label, self.fields[name].help_text = label, help_text
        if not self.instance.is_active and (revives := reactivation_notice(self.instance)):
            self.fields["revoke_credentials"].help_text = revives
        else:
            self.fields.pop("revoke_credentials", None)

    def clean(self) -> Any:
        """Refuse to deactivate or demote the last active superuser."""
        cleaned, user = super().clean(), self.instance
        for name in self.cleaned_data.keys() & self.initial.keys() - {*self.changed_data}:
            self.cleaned_data[name] = self.initial[name]
        keeps = all(self.cleaned_data.get(name, True) for name in ("is_active", "is_superuser"))
        if user.is_active and user.is_superuser and not keeps:
            check_superuser_remains(user)
        return cleaned

    def clean_groups(self) -> Any:
        """Refuse to assign a group with permissions that the person lacks."""
        groups = self.merged("groups")
        had = set(self.instance.groups.all())
        for group in groups:
            if group not in had and not may_grant_group(self.person, group):
                raise forms.ValidationError(
                    f"You cannot assign the group {group}, because it has permissions that you "
                    "lack."
                )
        return groups


class SignedOnFilter(admin.SimpleListFilter):
    """A filter for people without a recent login. It excludes machine accounts."""

    title = "signed on"
    parameter_name = "signed_on"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        days = settings.OWNER_IDLE_DAYS or _IDLE_DAYS
        return [("idle", f"Not for {days} day{pluralize(days)}")]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() != "idle":
            return queryset
        days = settings.OWNER_IDLE_DAYS or _IDLE_DAYS
        return queryset.filter(pk__in=User.objects.idle(days, timezone.now()))


@admin.register(User)
class UserAdmin(AuditedAdmin, UserAdminOfOurs):
    """The admin of people and machine accounts. Users can be deactivated, but not deleted."""

    form = UserForm
    page_key = ("username",)
    list_display = ("username", "display_name", "email", "signed_on", "joined", "shown_status")
    orders: ClassVar[Any] = {"username": ("username",), "joined": ("id",)}
    opening_order = "-joined"
    list_filter = (SignedOnFilter,)
    search_fields = ("username",)
    search_help_text = "The beginning of a user name."
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "display_name", "email", "has_password")}),
        ("Permissions", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Times", {"fields": ("signed_on", "joined")}),
    )
    readonly_fields = ("has_password", "signed_on", "joined")
    signed_on = moment_of("last_login", "signed on", absent="never")
    joined = moment_of("date_joined", "joined")

    def found(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Find users by a prefix of the user name, which is indexed."""
        return queryset.filter(username__startswith=term)

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Offer the groups as keyboard-accessible checkboxes."""
        if db_field.name == "groups":
            kwargs["widget"] = forms.CheckboxSelectMultiple()
            kwargs["help_text"] = ""
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, _obj: Any = None) -> tuple[str, ...]:
        """Make ``is_superuser`` read-only unless the person is a superuser."""
        more = () if getattr(request.user, "is_superuser", False) else ("is_superuser",)
        return (*self.readonly_fields, *more)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Offer to revoke credentials when the person reactivates a user.

        Without change permission, the page shows the derived status instead of input fields.
        """
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return fieldsets
        if not self.has_change_permission(request, obj):
            facts = ("shown_status", *fieldsets[0][1]["fields"], "groups")
            return ((None, {"fields": facts}), fieldsets[-1])
        if obj.is_active or not reactivation_notice(obj):
            return fieldsets
        (*first, (name, permissions), times) = fieldsets
        is_active, *others = permissions["fields"]
        fields = (is_active, "revoke_credentials", *others)
        return (*first, (name, {**permissions, "fields": fields}), times)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: Any) -> None:
        """Save the user, and revoke the user's credentials if requested."""
        super().save_model(request, obj, form, change)
        if obj.is_active and form.cleaned_data.get("revoke_credentials"):
            revoke_credentials(user=obj, actor=Actor.of_person(request))

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Deny changes, such as a new password, to users with permissions that the person lacks."""
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_change_user(person_of(request), obj))

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Deny deletion, because keys, tokens and the audit log refer to the user."""
        return False

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:  # noqa: A002 - Django's name
        """Set the password of another user. A user's own password requires the current password.

        Otherwise, a stolen session could set the password, and with it add a second factor.
        """
        if self.get_object(request, unquote(id)) == request.user:
            return HttpResponseRedirect(reverse("admin:password_change"))
        return super().user_change_password(request, id, form_url)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Show the credentials and the password action to people with the required permissions."""
        user = context.get("original")
        if user is not None:
            context["credentials"] = credentials_of(user, request)
        if user is not None and self.has_change_permission(request, user):
            url = reverse("admin:auth_user_password_change", args=(user.pk,))
            label = "Change your password" if user == request.user else "Set the password"
            context["tools"] = [{"tool": {"label": label}, "url": url}]
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="status")
    def shown_status(self, user: User) -> str:
        """Return whether the user is active and can log in to the admin."""
        if not user.is_active:
            return badge("idle", "Inactive")
        may = (
            "superuser" if user.is_superuser else "can log in to the admin" if user.is_staff else ""
        )
        active = badge("ok", "Active")
        return format_html("{}, {}", active, may) if may else active

    @admin.display(description="password")
    def has_password(self, user: User) -> str:
        """Return whether the user has a password. The page never shows the hash."""
        return "set" if user.has_usable_password() else "none"
