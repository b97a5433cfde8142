"""Admin pages that create an object with a custom form and an action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from rest_framework.exceptions import APIException

from infra_service.lib.admin import ReadOnlyAdmin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django import forms
    from django.http import HttpRequest, HttpResponse

    from apikeys.actors import Actor


class FormPage(ReadOnlyAdmin):
    """An admin mixin for pages with a form for a new object."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(f"{self.opts.app_label}.add_{self.opts.model_name}"))

    def form_page(
        self, request: HttpRequest, form: forms.Form, *, title: str, button: str, method: str = ""
    ) -> HttpResponse:
        """Return a page with the form.

        ``button`` labels the submit button. ``method`` is ``get``, or empty for POST.
        """
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "button": button,
            "method": method,
            "opts": self.opts,
            "form": form,
            "media": self.media,
        }
        return TemplateResponse(request, "admin/apikeys/form.html", context)


class AddByForm(FormPage):
    """An admin mixin that passes the form's ``cleaned_data`` to ``add``."""

    add_form_class: ClassVar[type[forms.Form]]

    def add(self, actor: Actor, **fields: Any) -> Any:
        """Create an object and return it."""
        raise NotImplementedError

    def add_form(self, data: Any, requested: Mapping[str, Any]) -> forms.Form:
        """Return the form. ``requested`` contains the query parameters."""
        del requested
        return self.add_form_class(data)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the form, create the object, and redirect to its page."""
        del form_url, extra_context
        if not self.has_add_permission(request):
            raise PermissionDenied
        data = request.POST if request.method == "POST" else None
        form = self.add_form(data, request.GET.dict())
        if form.is_valid():
            try:
                added = self.add(self.admin_site.actor(request), **form.cleaned_data)
            except APIException as error:
                form.add_error(None, str(error.detail))
            else:
                messages.success(request, f"The {self.opts.verbose_name} {added} was added.")
                return HttpResponseRedirect(self._address(added, "change"))
        title = f"Add {self.opts.verbose_name}"
        return self.form_page(request, form, title=title, button="Add")
