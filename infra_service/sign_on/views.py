"""Sign-on at the provider: start and callback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import login
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from apikeys import logins
from infra_service.lib.api.throttling import count_login
from infra_service.sign_on import logout
from infra_service.sign_on.configuration import BACKEND
from infra_service.sign_on.errors import ProviderUnavailableError, SignOnRefusedError
from infra_service.sign_on.provider import claims_of_return, redirect_to_provider
from infra_service.sign_on.users import admit_user

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

log = structlog.get_logger("infra_service.sign_on")

_WORDS: Final = {
    "no_group": "Your groups at the provider have no access.",
    "no_groups_claim": "The provider did not send your groups.",
    "inactive": "Your account is inactive. Ask an operator to activate it.",
    "state": "The sign-on expired or started in another browser. Start again.",
}
_OTHERWISE: Final = "The provider did not identify you."
_NOT_MAPPED: Final = (
    "An operator must map groups of the provider to groups of this service in OIDC_GROUP_MAP. "
)


@never_cache
@require_GET
def sign_on(request: HttpRequest) -> HttpResponse:
    """Redirect the browser to the provider.

    The login page uses a link instead of a form, because its content security policy blocks forms
    that redirect to another site.
    """
    if count_login(request):
        return _page(request, 429, "Too many attempts from this address. Wait a minute.")
    try:
        return redirect_to_provider(request, _own_address(request, request.GET.get("next", "")))
    except ProviderUnavailableError as error:
        return _unavailable(request, error)


@never_cache
@require_GET
def sign_on_callback(request: HttpRequest) -> HttpResponse:
    """Log in a user who returns from the provider."""
    try:
        returned = claims_of_return(request)
        user = admit_user(request, returned.claims)
    except ProviderUnavailableError as error:
        return _unavailable(request, error)
    except SignOnRefusedError as refusal:
        return _refused(request, refusal)
    login(request, user, BACKEND)
    logout.remember(request, returned.end_session_endpoint, returned.id_token)
    return HttpResponseRedirect(_own_address(request, returned.address))


def log_out_at_provider(request: HttpRequest, address: str) -> TemplateResponse:
    """Redirect the browser to the provider's logout after the local logout."""
    context = {**admin.site.each_context(request), "title": "Logged out", "address": address}
    return TemplateResponse(request, "admin/logout_at_provider.html", context)


def _own_address(request: HttpRequest, address: str) -> str:
    """Return the URL if it has this host, otherwise the URL of the overview."""
    hosts, secure = {request.get_host()}, request.is_secure()
    if url_has_allowed_host_and_scheme(address, hosts, require_https=secure):
        return address
    return reverse("admin:index")


def _unavailable(request: HttpRequest, error: ProviderUnavailableError) -> HttpResponse:
    log.warning("provider_unavailable", error=str(error))
    return _page(request, 503, "The provider is not available. Try again in a minute.")


def _refused(request: HttpRequest, refusal: SignOnRefusedError) -> HttpResponse:
    cause = str(refusal.__cause__ or "")
    details: dict[str, Any] = {"subject": refusal.subject} if refusal.subject else {}
    if refusal.reason in {"no_group", "no_groups_claim"}:
        details |= {"claim": settings.OIDC_GROUPS_CLAIM, "received": refusal.received}
    log.warning("sign_on_refused", reason=refusal.reason, cause=cause, **details)
    if refusal.reason != "state":  # any client can send a request without a state
        logins.record_refusal(request, refusal.reason, refusal.user, **details)
    # The names are the reader's own, because the provider has proved the reader's identity.
    shown = {
        "explanation": _explanation(refusal),
        "received": refusal.received,
        "request_id": getattr(request, "request_id", ""),
        "trace_id": getattr(request, "trace_id", ""),
    }
    return _page(request, 403, _WORDS.get(refusal.reason, _OTHERWISE), **shown)


def _explanation(refusal: SignOnRefusedError) -> str:
    """Return the text above the list of groups or claims in the ID token."""
    claim = settings.OIDC_GROUPS_CLAIM
    if refusal.reason == "no_groups_claim":
        return (
            f"The ID token has no claim “{claim}” that is a list of strings. An operator must add "
            "the claim at the provider, or set OIDC_GROUPS_CLAIM. The token has these claims:"
        )
    if refusal.reason == "no_group" and refusal.received:
        return f"{_NOT_MAPPED}The provider sent these groups:"
    return f"{_NOT_MAPPED}The provider sent no groups." if refusal.reason == "no_group" else ""


def _page(request: HttpRequest, status: int, message: str, **shown: Any) -> TemplateResponse:
    context = {**admin.site.each_context(request), "title": message, **shown}
    return TemplateResponse(request, "admin/sign_on.html", context, status=status)
