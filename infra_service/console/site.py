"""The admin site: names of objects, overview, login and logout."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, JsonResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache

from apikeys.actors import Actor
from infra_service.change_history import latest
from infra_service.console import bound_names, event_names
from infra_service.console.overview import overview
from infra_service.lib.admin.site import AuditedSite
from infra_service.lib.api.throttling import count_login
from infra_service.sign_on.configuration import OIDC, PASSWORD, REQUIRED

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


#: The pages in menu order. The first page of a section determines the position of the section.
_PAGES: Final = (
    "State", "ResourceEntry", "Component", "Environment", "Application",
    "Workload", "Cluster",
    "Change",
    "ApiKey", "AccessToken", "TrustPolicy", "Issuer", "User", "Group", "AuditEvent",
    "WebhookEndpoint", "Delivery",
)  # fmt: skip

_TOO_MANY: Final = "Too many attempts from this address. Wait a minute."
#: The names of Django's URLs that no page uses.
_UNUSED: Final = ("view_on_site", "autocomplete")


def _place(model: dict[str, Any]) -> int:
    name = model["object_name"]
    return _PAGES.index(name) if name in _PAGES else len(_PAGES)


class ServiceAdminSite(AuditedSite):
    site_header = site_title = "Infrastructure management service"
    index_title = "Overview"
    site_url = None
    empty_value_display = "–"  # noqa: RUF001 - a dash

    def actor(self, request: HttpRequest) -> Actor:
        """Return the logged-in user as an actor."""
        return Actor.of_person(request)

    def audit_log_url(self, object_id: str) -> str:
        """Return the URL of the audit log, filtered by the object."""
        audit_log = reverse("admin:apikeys_auditevent_changelist")
        return f"{audit_log}?{urlencode({'q': object_id})}"

    resources_of = staticmethod(event_names.describe)
    ids_named = staticmethod(event_names.ids_named)
    names_of = staticmethod(bound_names.names_of)
    named = staticmethod(bound_names.link)
    ids_of = staticmethod(bound_names.ids_of)
    latest_changes = staticmethod(latest.latest_changes)

    def get_urls(self) -> list[Any]:
        """Return the URLs of the service, and Django's URLs without the pages that are unused.

        ``r/`` redirects to an object on the site. ``autocomplete/`` counts all rows, and fails for
        hostile parameters.
        """
        names = path("names/<str:kind>/", self.admin_view(self.names_view), name="names")
        found = [u for u in super().get_urls() if getattr(u, "name", "") not in _UNUSED]
        everything = path("search/", self.admin_view(self.search_view), name="search")
        return [*self._sign_on_urls(), names, everything, *found]

    def _sign_on_urls(self) -> list[Any]:
        """Return the URLs of sign-on and second factors, if they are configured."""
        if not settings.HAS_SECOND_FACTORS:
            return []
        # Imported here because the models belong to an optional extra.
        from infra_service.sign_on import forms, urls  # noqa: PLC0415

        if settings.ADMIN_LOGIN != PASSWORD:
            self.login_form = forms.PasswordForm
        return urls.patterns(self)

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register pages, except django-allauth's, because operators must not edit its data."""
        models = [model_or_iterable] if isinstance(model_or_iterable, type) else model_or_iterable
        ours = [model for model in models if not model.__module__.startswith("allauth.")]
        super().register(ours, admin_class, **options)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the sections, and merge apps with the same name, such as users and groups."""
        apps: dict[str, list[Any]] = {}
        for app in super().get_app_list(request):
            apps.setdefault(app["name"], []).append(app)
        sections = [
            {**same[0], "models": sorted((m for app in same for m in app["models"]), key=_place)}
            for same in apps.values()
            if app_label is None or any(app["app_label"] == app_label for app in same)
        ]
        return sorted(sections, key=lambda section: _place(section["models"][0]))

    def names_view(self, request: HttpRequest, kind: str) -> JsonResponse:
        """Return suggestions of this kind for the typed text."""
        text = request.GET.get("q", "").strip()
        return JsonResponse({"names": bound_names.offered(kind, text, request.user)})

    def search_view(self, request: HttpRequest) -> HttpResponse:
        """Show the search results. POST keeps the text out of URLs and logs."""
        # Imported here because the module imports admins that register themselves on this site.
        from infra_service.console import search  # noqa: PLC0415

        text = request.POST.get("text", "").strip()[: search.MOST_TEXT]
        context = {
            **self.each_context(request),
            "title": "Search",
            "text": text,
            "found": search.search(text, request.user),
            "is_secret": search.contains_secret(text),
        }
        return TemplateResponse(request, "admin/search.html", context)

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        context = {"overview": overview(request.user), **(extra_context or {})}
        return super().index(request, context)

    @method_decorator(never_cache)
    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Log a user in. The rate limit applies before the password check."""
        if request.method == "POST" and count_login(request):
            return self._refusal(request, 429, _TOO_MANY)
        context = {**self._sign_on_context(), **(extra_context or {})}
        if request.method == "POST" and settings.ADMIN_SECOND_FACTOR == REQUIRED:
            return self._password_step(request, context)
        return super().login(request, context)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Change the user's password. The rate limit applies before the check of the old password.

        Otherwise, a thief of the session could guess the password.
        """
        if request.method == "POST" and count_login(request):
            return self._refusal(request, 429, _TOO_MANY)
        return super().password_change(request, extra_context)

    def _password_step(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        """Check the password, then continue with the second factor."""
        from infra_service.sign_on.second_factor_views import PasswordStep  # noqa: PLC0415 - an extra

        shown = {"title": "Log in", "app_path": request.get_full_path(), **context}
        view: Any = PasswordStep.as_view(extra_context={**self.each_context(request), **shown})
        answer: HttpResponse = view(request)
        return answer

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add ``has_second_factors`` to the context, and hide the sidebar before login."""
        context = super().each_context(request)
        shows_sidebar = context["has_permission"] and context["is_nav_sidebar_enabled"]
        return {
            **context,
            "is_nav_sidebar_enabled": shows_sidebar,
            "has_second_factors": settings.HAS_SECOND_FACTORS,
        }

    def _sign_on_context(self) -> dict[str, Any]:
        if settings.ADMIN_LOGIN == PASSWORD:
            return {}
        name = settings.OIDC_NAME or urlsplit(settings.OIDC_ISSUER).netloc
        return {"sign_on": {"name": name, "only": settings.ADMIN_LOGIN == OIDC}}

    @method_decorator(never_cache)
    def logout(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Log out of the service, and of the user's sign-on provider if it supports logout."""
        if settings.ADMIN_LOGIN == PASSWORD or request.method != "POST":
            return super().logout(request, extra_context)
        from infra_service.sign_on import logout, views  # noqa: PLC0415 - an extra

        address = logout.address_at_provider(request)
        answer = super().logout(request, extra_context)
        return views.log_out_at_provider(request, address) if address else answer

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002 - Django's signature
        """Wrap a view so that 403 and 404 are pages instead of JSON."""

        @functools.wraps(view)
        def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                answer: HttpResponse = view(request, *args, **kwargs)
            except PermissionDenied:
                forbids = (
                    "The admin does not" if request.user.is_superuser else "Your groups do not"
                )
                return self._refusal(request, 403, f"{forbids} allow this.")
            except Http404:
                return self._refusal(request, 404, "This page does not exist.")
            return answer

        return super().admin_view(answered, cacheable)

    def _refusal(self, request: HttpRequest, status: int, message: str) -> TemplateResponse:
        context = {**self.each_context(request), "title": message}
        return TemplateResponse(request, "admin/refusal.html", context, status=status)
