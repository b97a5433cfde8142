"""The page on which a logged-in user authorizes ``terraform login``."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone

from apikeys import audit
from apikeys.actors import Actor
from apikeys.admin.adding import FormPage
from apikeys.scopes import Scope
from apikeys.terraform_login import Code, InvalidRequestError, LoginRequest

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

_SCOPES: Final = (Scope.STATE_READ, Scope.STATE_WRITE, Scope.STATE_ADMIN)
_LIFETIMES: Final = ((1, "1 day"), (7, "7 days"), (30, "30 days"), (90, "90 days"))


class TerraformLoginForm(forms.Form):
    required_css_class = "required"

    scopes = forms.MultipleChoiceField(
        choices=[(s.value, f"{s.value} – {s.label}") for s in _SCOPES],  # noqa: RUF001 - a dash
        initial=(Scope.STATE_READ, Scope.STATE_WRITE),
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.TypedChoiceField(label="Expires after", choices=_LIFETIMES, coerce=int, initial=30)


class TerraformLoginPage(FormPage):
    """An admin mixin that adds the page for users with permission to issue tokens."""

    def get_urls(self) -> list[URLPattern]:
        urls = super().get_urls()
        if not settings.TERRAFORM_LOGIN:
            return urls
        view = self.admin_site.admin_view(self.terraform_login_view)
        return [path("terraform-login/", view, name="terraform_login"), *urls]

    def terraform_login_view(self, request: HttpRequest) -> HttpResponse:
        """Show the confirmation, then redirect to the client's listener with the code."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        try:
            login = LoginRequest.read(request.GET.dict())
        except InvalidRequestError as error:
            title = f"Invalid terraform login request: {error}"
            return self._page(request, "admin/refusal.html", status=400, title=title)
        form = TerraformLoginForm(request.POST if request.method == "POST" else None)
        shown: dict[str, Any] = {
            "title": "Log in to Terraform",
            "form": form,
            "opts": self.opts,
        }
        if form.is_valid():
            given = form.cleaned_data
            code = Code(
                user_id=request.user.pk,  # type: ignore[arg-type]  # logged in
                scopes=given["scopes"],
                token_expires_at=timezone.now() + dt.timedelta(days=given["days"]),
                redirect_uri=login.redirect_uri,
                challenge=login.challenge,
            )
            audit.authorize_and_record(
                Actor.of_person(request), "access_token.authorize", code.token_id
            )
            shown["address"] = login.redirect(code.seal())
        return self._page(request, "admin/apikeys/terraform_login.html", **shown)

    def _page(
        self, request: HttpRequest, template: str, status: int = 200, **shown: Any
    ) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "media": self.media, **shown}
        response = TemplateResponse(request, template, context, status=status)
        response["Cache-Control"] = "no-store"
        return response
