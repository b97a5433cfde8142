"""Shared behaviour of the user and group pages: permission checks and audit events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from apikeys import audit
from apikeys.actors import Actor
from apikeys.admin.choices import ChoicesOfNumbers
from infra_service.lib.admin import KeysetAdmin

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apikeys.models import User


def person_of(request: HttpRequest) -> User:
    """Return the logged-in person."""
    return cast("User", request.user)


class AuditedAdmin(KeysetAdmin):
    """An admin that passes the logged-in person to its form and writes the audit log."""

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Use a field that rejects ids beyond SQLite's integer range."""
        given = {"form_class": ChoicesOfNumbers, **kwargs}
        return super().formfield_for_manytomany(db_field, request, **given)

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002 - Django's signature
        **kwargs: Any,
    ) -> Any:
        """Pass the logged-in person to the form."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.person = request.user
        return form

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Show the object's name as the heading."""
        if (obj := context.get("original")) is not None:
            context |= {"title": str(obj), "subtitle": None}
        return super().render_change_form(request, context, *args, **kwargs)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record the creation in the audit log."""
        self._record(request, obj, "create", message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record the names of the changed fields, without their values."""
        self._record(request, obj, "change", message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Record each object before its deletion."""
        for obj in queryset:
            self._record(request, obj, "delete", [])
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, obj: Any, verb: str, changes: Any) -> None:
        action = f"{self.opts.model_name}.{verb}"
        audit.authorize_and_record(
            Actor.of_person(request), action, obj.pk, name=str(obj), changes=changes
        )
