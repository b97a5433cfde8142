"""Validation of the sign-on settings, and the apps that they require. Imports no models."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from infra_service.lib.http_client.addresses import is_protected

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The values of ``ADMIN_LOGIN``.
PASSWORD, OIDC, BOTH = "password", "oidc", "both"
#: The values of ``ADMIN_SECOND_FACTOR``.
OFF, OPTIONAL, REQUIRED = "off", "optional", "required"

#: This backend checks at each request that the user is active.
BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
MIDDLEWARE: Final = "allauth.account.middleware.AccountMiddleware"
_APPS: Final = ("allauth", "allauth.account", "allauth.socialaccount", "allauth.mfa")
# The length of the database column.
_LONGEST_ISSUER: Final = 200


def sign_on_apps(
    *,
    issuer: str,
    client_id: str,
    client_secret: str,
    group_map: Mapping[str, str],
    admin_login: str,
    second_factor: str,
) -> list[str]:
    """Return the apps for sign-on, or an empty list if sign-on and second factors are off.

    Raises:
        ImproperlyConfigured: a setting is missing or invalid, or the extra is not installed. The
            message contains no values.
    """
    if admin_login not in {PASSWORD, OIDC, BOTH}:
        raise ImproperlyConfigured("ADMIN_LOGIN must be password, oidc or both")
    if second_factor not in {OFF, OPTIONAL, REQUIRED}:
        raise ImproperlyConfigured("ADMIN_SECOND_FACTOR must be off, optional or required")
    if not issuer:
        if admin_login != PASSWORD:
            raise ImproperlyConfigured(f"ADMIN_LOGIN={admin_login} needs OIDC_ISSUER")
        if second_factor == OFF:
            return []
        _require_extra(f"ADMIN_SECOND_FACTOR={second_factor}")
        return list(_APPS)
    if not is_protected(issuer) or urlsplit(issuer).query or len(issuer) > _LONGEST_ISSUER:
        raise ImproperlyConfigured(
            f"OIDC_ISSUER must be an https:// address of at most {_LONGEST_ISSUER} characters, "
            "identical to the provider's issuer"
        )
    given = {
        "OIDC_CLIENT_ID": client_id,
        "OIDC_CLIENT_SECRET": client_secret,
        "OIDC_GROUP_MAP": group_map,
    }
    if missing := [name for name, value in given.items() if not value]:
        raise ImproperlyConfigured(f"OIDC_ISSUER needs {', '.join(missing)}")
    _require_extra("OIDC_ISSUER")
    return list(_APPS)


def _require_extra(setting: str) -> None:
    if importlib.util.find_spec("allauth") is None:
        raise ImproperlyConfigured(
            f"{setting} needs the extra: pip install 'infra-service[sso]', or "
            ".venv/bin/pip install --require-hashes -r requirements-sso.txt"
        )
