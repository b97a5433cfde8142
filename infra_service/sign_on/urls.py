"""URLs of sign-on and second factors, within the admin's URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.urls import path

from infra_service.sign_on import second_factor_views, views
from infra_service.sign_on.configuration import PASSWORD

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.urls import URLPattern


def patterns(site: AdminSite) -> list[URLPattern]:
    """Return the URLs that the settings enable."""
    own = site.admin_view(second_factor_views.second_factors_page)
    found = [
        path("second-factor/", second_factor_views.second_factor_page, name="second_factor"),
        path("second-factors/", own, name="second_factors"),
    ]
    if settings.ADMIN_LOGIN != PASSWORD:
        found += [
            path("sign-on/", views.sign_on, name="sign_on"),
            path("sign-on/callback/", views.sign_on_callback, name="sign_on_callback"),
        ]
    return found
