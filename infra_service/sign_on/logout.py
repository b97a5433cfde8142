"""Logout at the provider (OpenID Connect RP-Initiated Logout 1.0).

The session stores the provider's ``end_session_endpoint``, so that a logout does not wait for the
provider. The session also stores the ID token, encrypted because it contains personal data.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from infra_service.lib import encryption
from infra_service.lib.http_client.addresses import is_protected

if TYPE_CHECKING:
    from django.http import HttpRequest

_KEPT: Final = "provider_logout"
_CONTEXT: Final = b"ID token of a session"
#: The maximum length of an ID token in a URL. Proxies and browsers limit URLs to 8 KB.
_LONGEST_HINT: Final = 4096


def remember(request: HttpRequest, endpoint: object, id_token: str) -> None:
    """Store the provider's logout URL and the ID token in the session."""
    if not isinstance(endpoint, str) or not is_protected(endpoint):
        return
    kept = {"endpoint": endpoint}
    if len(id_token) <= _LONGEST_HINT:
        payload, kept["key"] = encryption.encrypt(_CONTEXT, id_token.encode())
        kept["id_token"] = base64.b64encode(payload).decode()
    request.session[_KEPT] = kept


def address_at_provider(request: HttpRequest) -> str:
    """Return the provider's logout URL for this session, or an empty text if there is none."""
    kept: dict[str, Any] | None = request.session.get(_KEPT)
    if kept is None:
        return ""
    given = {
        "client_id": settings.OIDC_CLIENT_ID,
        "post_logout_redirect_uri": request.build_absolute_uri(reverse("admin:login")),
    }
    with suppress(KeyError, encryption.KeyMissingError, encryption.DamagedError):
        value = encryption.Encrypted(base64.b64decode(kept["id_token"]), kept["key"])
        given["id_token_hint"] = encryption.decrypt(_CONTEXT, value).decode()
    separator = "&" if "?" in kept["endpoint"] else "?"
    return f"{kept['endpoint']}{separator}{urlencode(given)}"
