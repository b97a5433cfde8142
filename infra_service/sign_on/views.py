"""The way to the provider, and the way back."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

import structlog
from django.contrib import admin
from django.contrib.auth import login
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from infra_service import logins
from infra_service.lib.api.throttling import count_login
from infra_service.sign_on.configuration import BACKEND
from infra_service.sign_on.errors import ProviderUnavailableError, SignOnRefusedError
from infra_service.sign_on.people import let_in
from infra_service.sign_on.provider import claims_of_return, redirect_to_provider

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

log = structlog.get_logger("infra_service.sign_on")

# Groups are looked at when somebody signs on, so nobody keeps them for longer than a day's work.
_SESSION: Final = dt.timedelta(hours=12)
_WORDS: Final = {
    "no_group": "None of your groups at the provider may come in here.",
    "inactive": "Your account here was made inactive.",
    "state": "This sign-on was not begun in this browser, or too long ago.",
}
_OTHERWISE: Final = "The provider did not say who you are."


@never_cache
@require_GET
def sign_on(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider.

    By a link and not by a form: the page's policy would stop a form whose answer leads elsewhere.
    """
    if count_login(request):
        return _page(request, 429, "Too many tries from here. Wait a minute.")
    try:
        return redirect_to_provider(request, _own_address(request, request.GET.get("next", "")))
    except ProviderUnavailableError as error:
        return _unavailable(request, error)


@never_cache
@require_GET
def sign_on_callback(request: HttpRequest) -> HttpResponse:
    """Let in who comes back from the provider."""
    try:
        claims, address = claims_of_return(request)
        user = let_in(request, claims)
    except ProviderUnavailableError as error:
        return _unavailable(request, error)
    except SignOnRefusedError as refusal:
        return _refused(request, refusal)
    login(request, user, BACKEND)
    request.session.set_expiry(_SESSION)
    return HttpResponseRedirect(_own_address(request, address))


def _own_address(request: HttpRequest, address: str) -> str:
    """Return the address if it is one of this host, else the overview's."""
    hosts, secure = {request.get_host()}, request.is_secure()
    if url_has_allowed_host_and_scheme(address, hosts, require_https=secure):
        return address
    return reverse("admin:index")


def _unavailable(request: HttpRequest, error: ProviderUnavailableError) -> HttpResponse:
    log.warning("provider_unavailable", error=str(error))
    return _page(request, 503, "The provider cannot be asked now. Try again in a minute.")


def _refused(request: HttpRequest, refusal: SignOnRefusedError) -> HttpResponse:
    cause = str(refusal.__cause__ or "")
    log.warning("sign_on_refused", reason=refusal.reason, subject=refusal.subject, cause=cause)
    if refusal.reason != "state":  # anybody can come with none
        told = {"subject": refusal.subject} if refusal.subject else {}
        logins.record_refusal(request, refusal.reason, refusal.user, **told)
    return _page(request, 403, _WORDS.get(refusal.reason, _OTHERWISE))


def _page(request: HttpRequest, status: int, message: str) -> TemplateResponse:
    context = {**admin.site.each_context(request), "title": message}
    return TemplateResponse(request, "admin/sign_on.html", context, status=status)
