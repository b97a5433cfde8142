"""Pages that add an object by a form of their own, through our actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from rest_framework.exceptions import APIException

from infra_service.lib.admin import ReadOnlyAdmin

if TYPE_CHECKING:
    from django import forms
    from django.http import HttpRequest, HttpResponse

    from apikeys.actors import Actor


class FormPage(ReadOnlyAdmin):
    """Has a page with a form for what is not there yet."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(f"apikeys.add_{self.opts.model_name}"))

    def form_page(
        self, request: HttpRequest, form: forms.Form, *, title: str, button: str
    ) -> HttpResponse:
        """Return the page, whose button says what it does."""
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "button": button,
            "opts": self.opts,
            "form": form,
            "media": self.media,
        }
        return TemplateResponse(request, "admin/apikeys/form.html", context)


class AddByForm(FormPage):
    """Adds what the admin lists; the form's ``cleaned_data`` are what ``add`` takes."""

    add_form_class: ClassVar[type[forms.Form]]

    def add(self, actor: Actor, **fields: Any) -> Any:
        """Add an object and return it."""
        raise NotImplementedError

    def add_form(self, data: Any) -> forms.Form:
        return self.add_form_class(data)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Ask what to add, add it, and show it."""
        del form_url, extra_context
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = self.add_form(request.POST if request.method == "POST" else None)
        if form.is_valid():
            try:
                added = self.add(self.admin_site.actor(request), **form.cleaned_data)
            except APIException as error:
                form.add_error(None, str(error.detail))
            else:
                messages.success(request, f"{added} was added.")
                return HttpResponseRedirect(self._address(added, "change"))
        title = f"Add {self.opts.verbose_name}"
        return self.form_page(request, form, title=title, button="Add")
