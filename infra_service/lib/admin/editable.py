"""The base class of admins that add and change objects through actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpResponseRedirect
from django.urls import reverse
from rest_framework.exceptions import APIException

from infra_service.lib.admin.model_admin import ReadOnlyAdmin
from infra_service.lib.admin.shown_values import ShownValues

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

    ModelForm = forms.ModelForm[Any]
else:
    ModelForm = forms.ModelForm


def _skip_admin_log(*_args: Any) -> None:
    """Do not log, because the actions write the audit log."""


class EditForm(ShownValues, ModelForm):
    """The form of an ``EditableAdmin``, which saves only the fields that the person changed."""

    #: The error of the action that refused the values of the form.
    refusal = ""

    def clean(self) -> Any:
        cleaned = super().clean()
        if self.refusal:
            self.add_error(None, self.refusal)
        return cleaned


class EditableAdmin(ReadOnlyAdmin):
    """An admin that adds and changes objects through the actions that a subclass implements."""

    form: Any = EditForm
    log_addition: Any = staticmethod(_skip_admin_log)
    log_change: Any = staticmethod(_skip_admin_log)
    log_deletions: Any = staticmethod(_skip_admin_log)

    def create(self, fields: Mapping[str, Any], actor: Any) -> Any:
        """Create an object with these columns and return it."""
        raise NotImplementedError

    def update(self, obj: Any, changes: Mapping[str, Any], actor: Any) -> None:
        """Change these columns of the object."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields, without read-only fields for a new object."""
        names = super().get_fields(request, obj)
        return names if obj else [name for name in names if name not in self.readonly_fields]

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show or save the form. If the action is refused, show the form with the error."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except APIException as error:
            request.refusal = str(error.detail)  # type: ignore[attr-defined]  # for get_form
            return super().changeform_view(request, *args, **kwargs)

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the form, with the error of the refused action."""
        form: Any = super().get_form(request, *args, **kwargs)
        form.refusal = getattr(request, "refusal", "")
        return form

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        """Confirm and delete. Show the error of a rejected action on the object's page."""
        try:
            return super().delete_view(request, object_id, *args, **kwargs)
        except APIException as error:
            messages.error(request, str(error.detail))
            page = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change"
            return HttpResponseRedirect(reverse(page, args=(object_id,)))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        names = form.changed_data if change else form.cleaned_data
        fields: list[Any] = [self.opts.get_field(name) for name in names]
        values = {field.attname: getattr(obj, field.attname) for field in fields}
        actor = self.admin_site.actor(request)
        if change:
            self.update(obj, values, actor)
        else:
            obj.pk = self.create(values, actor).pk
