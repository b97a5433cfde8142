"""The second login step, and the page on which users manage their second factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.auth import login
from django.contrib.auth.views import LoginView
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from apikeys import audit, logins
from apikeys.actors import Actor
from infra_service.lib.api.limits import Limit, limiter
from infra_service.lib.api.throttling import count_login
from infra_service.sign_on import pending, second_factor
from infra_service.sign_on.configuration import BACKEND
from infra_service.sign_on.forms import PasswordForm

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from apikeys.models import User

# The maximum attempts per user and minute from all addresses, because a code has only six digits.
_TRIES: Final = 5
_TOO_MANY: Final = "Too many attempts. Wait a minute."


class PasswordStep(LoginView):
    """A login view that only checks the password and continues with the second factor."""

    authentication_form = PasswordForm
    template_name = "admin/login.html"

    def form_valid(self, form: Any) -> HttpResponseRedirect:
        address = self.get_redirect_url() or reverse("admin:index")
        pending.begin(self.request, form.get_user(), address)
        return HttpResponseRedirect(reverse("admin:second_factor"))


@sensitive_post_parameters("code")
@never_cache
def second_factor_page(request: HttpRequest) -> HttpResponse:
    """Log in a user with a correct password and second factor."""
    user = pending.user_of(request)
    if user is None:
        return HttpResponseRedirect(reverse("admin:login"))
    error = ""
    if request.method == "POST":
        if _too_many(request, user):
            return _page(request, "second_factor", {"error": _TOO_MANY}, 429)
        if _is_shown(request, user):
            address = pending.address_of(request)
            pending.end(request)
            login(request, user, BACKEND)
            return HttpResponseRedirect(address)
        logins.record_refusal(request, "second_factor", user)
        error = "The code or the passkey is not valid, or was already used."
    kinds = {row.type for row in second_factor.factors_of(user)}
    has_passkey = second_factor.PASSKEY in kinds
    context = {
        "error": error,
        "has_codes": second_factor.CODES in kinds,
        "question": second_factor.passkey_question(user) if has_passkey else None,
    }
    return _page(request, "second_factor", context)


def _is_shown(request: HttpRequest, user: User) -> bool:
    if "credential" in request.POST:
        return second_factor.passkey_is_right(user, request.POST["credential"])
    code = request.POST.get("code", "").replace(" ", "")
    return second_factor.code_is_right(user, code)


@sensitive_post_parameters("code", "password")
@never_cache
def second_factors_page(request: HttpRequest) -> HttpResponse:
    """Add and remove the user's second factors.

    Require the password, because a session can be stolen.
    """
    user: Any = request.user
    error = ""
    if request.method == "POST":
        if _too_many(request, user):
            return _page(request, "second_factors", {"error": _TOO_MANY}, 429)
        if not user.check_password(request.POST.get("password", "")):
            logins.record_refusal(request, "password", user)
            error = "The password is wrong."
        elif change := _change(request, user):
            audit.authorize_and_record(
                Actor.of_person(request),
                "user.second_factor",
                user.pk,
                name=user.username,
                **change,
            )
            return HttpResponseRedirect(reverse("admin:second_factors"))
        else:
            error = "The code or the passkey is not valid. Try again."
    factors = [row.wrap() for row in second_factor.factors_of(user)]
    secret = second_factor.offered_secret(request, user)
    address = second_factor.address_of_secret(user, secret, request.get_host())
    context = {
        "title": "Second factors",
        "error": error,
        "factors": factors,
        "secret": secret,
        "picture": second_factor.qr_code_of(address),
        "question": second_factor.new_passkey_question(user),
    }
    return _page(request, "second_factors", context)


def _change(request: HttpRequest, user: User) -> dict[str, str]:
    """Apply the form, and return the change for the audit log, or an empty dict."""
    given = request.POST
    if "remove" in given:
        for row in second_factor.factors_of(user):
            if str(row.pk) == given["remove"]:
                row.delete()
                return {"removed": row.type}
    elif given.get("credential"):
        # PostgreSQL cannot store NUL characters in JSON.
        name = given.get("name", "").replace("\0", "").strip()[:50] or "Passkey"
        if second_factor.add_passkey(user, name, given["credential"]):
            return {"added": second_factor.PASSKEY.value}
    elif second_factor.add_codes(request, user, given.get("code", "").replace(" ", "")):
        return {"added": second_factor.CODES.value}
    return {}


def _too_many(request: HttpRequest, user: User) -> bool:
    tries = Limit("second_factor", str(user.pk), _TRIES)
    return count_login(request) is not None or limiter().hit(tries) is not None


def _page(
    request: HttpRequest, name: str, context: dict[str, Any], status: int = 200
) -> TemplateResponse:
    given = {**admin.site.each_context(request), "title": "Second factor", **context}
    return TemplateResponse(request, f"admin/{name}.html", given, status=status)
