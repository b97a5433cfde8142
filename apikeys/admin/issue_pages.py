"""Admin pages that issue a key or a token and show its secret once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from rest_framework.exceptions import APIException

from apikeys.actors import Actor
from apikeys.admin import handover
from apikeys.admin.adding import FormPage
from apikeys.admin.issuing import CredentialForm
from infra_service.lib.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from django import forms
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern


class IssuePages(FormPage):
    """An admin mixin that issues credentials."""

    form_class: ClassVar[type[forms.Form]] = CredentialForm
    #: The label of the button, and the first word of the page title.
    issue_label: ClassVar[str] = "Issue"

    def issue(self, actor: Actor, **fields: Any) -> tuple[Any, str]:
        """Issue a credential from the form's fields. Return the credential and its secret."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.issued_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_issued"
        return [path("<path:object_id>/issued/", view, name=name), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the form, issue the credential, and redirect to the page with the secret."""
        del form_url, extra_context
        if not self.has_add_permission(request):
            raise PermissionDenied
        # A link must not fill in other fields, such as scopes or an address.
        preset = request.GET.get("preset", "")
        initial = {"owner": request.user.get_username(), "preset": preset}
        given = request.POST if request.method == "POST" else None
        form: Any = self.form_class(given, initial=initial, site=self.admin_site)  # type: ignore[call-arg]  # these forms accept it
        if form.is_valid() and (issued := self._issued(request, form)):
            return self._redirect_to_secret(request, *issued)
        name = str(self.opts.verbose_name)
        title = f"{self.issue_label} {'an' if name[0] in 'Aa' else 'a'} {name}"
        return self.form_page(request, form, title=title, button=self.issue_label)

    def issued_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the secret once."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        credential = self.get_object(request, unquote(object_id))
        if credential is None:
            raise Http404
        secret = handover.load_once(request, str(credential.pk))
        if secret is None:
            messages.info(
                request,
                "The secret is no longer available: it is shown once, within two minutes. If you "
                "do not have it, rotate the key, or revoke the credential and issue another.",
            )
            return HttpResponseRedirect(self._address(credential, "change"))
        context = {
            **self.admin_site.each_context(request),
            "title": "Copy the secret now",
            "opts": self.opts,
            "original": credential,
            "secret": secret,
        }
        response = TemplateResponse(request, "admin/apikeys/secret.html", context)
        response["Cache-Control"] = "no-store"
        handover.forget(response, self._issued_address(credential.pk))
        return response

    def after_tool(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Redirect to the page with the secret if the action has issued a new secret."""
        secret: str | None = getattr(obj, "new_secret", None)
        if secret is None:
            return super().after_tool(request, obj)
        return self._redirect_to_secret(request, obj, secret)

    def _redirect_to_secret(
        self, request: HttpRequest, credential: Any, secret: str
    ) -> HttpResponse:
        address = self._issued_address(credential.pk)
        response = HttpResponseRedirect(address)
        given = {"credential_id": str(credential.pk), "secret": secret, "path": address}
        handover.store(request, response, **given)
        return response

    def _issued_address(self, credential_id: Any) -> str:
        model = f"{self.opts.app_label}_{self.opts.model_name}"
        return reverse(f"admin:{model}_issued", args=(quote(credential_id),))

    def _issued(self, request: HttpRequest, form: forms.Form) -> tuple[Any, str] | None:
        """Return a new credential and its secret, or add the errors to the form."""
        try:
            return self.issue(Actor.of_person(request), **form.cleaned_data)
        except InvalidParameter as error:
            for fault in error.field_violations:
                form.add_error(fault["field"], fault["description"])
        except APIException as error:
            form.add_error(None, str(error.detail))
        return None
