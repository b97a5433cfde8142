"""DRF authentication: a bearer token, or a token as the password of HTTP Basic."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, cast

from rest_framework.authentication import BaseAuthentication

from apikeys import metrics
from apikeys.callers import find_caller
from apikeys.errors import CredentialsMalformed
from apikeys.metrics import Authentication

if TYPE_CHECKING:
    from rest_framework.request import Request

    from apikeys.grants import Caller
    from infra_service.lib.database.compiled import Prefetch

_REALM: Final = 'realm="infra-service"'


def caller_of(request: Request) -> Caller:
    """Return the caller of an authenticated request."""
    return cast("Caller", request.auth)


class TokenAuthentication(BaseAuthentication):
    """Authentication by ``Authorization: Bearer <token>`` (RFC 6750).

    If the view sets ``accepts_basic``, a client can also send the token as the password of HTTP
    Basic, with any user name. Terraform's http backend supports only HTTP Basic.
    """

    def authenticate(self, request: Request) -> tuple[Caller, Caller] | None:
        """Return the caller, or None if the request has no credentials.

        Raises:
            CredentialsMalformed: the header uses another scheme or contains no token.
            CredentialsInvalid: the token is not valid.
            TokenExpired: the token was valid until it expired.
            AddressNotAllowed: the token cannot be used from the client's address.
        """
        if not request.META.get("HTTP_AUTHORIZATION"):
            return None
        token = token_of(request)
        if not token:
            metrics.count(Authentication.MALFORMED)
            raise CredentialsMalformed
        caller = find_caller(token, _prefetch_of(request), request.META.get("REMOTE_ADDR", ""))
        return caller, caller

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401, with an error only when credentials were sent."""
        bearer = f"Bearer {_REALM}"
        if request.META.get("HTTP_AUTHORIZATION"):
            bearer += ', error="invalid_token"'
        return f"{bearer}, Basic {_REALM}" if _accepts_basic(request) else bearer


def token_of(request: Request) -> str:
    """Return the token in a request, or an empty text."""
    header: str = request.META.get("HTTP_AUTHORIZATION", "")
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() == "basic" and _accepts_basic(request):
        return _password(credentials)
    return ""


def _prefetch_of(request: Request) -> Prefetch[Any] | None:
    """Return the view's query, which authentication runs in the same round trip."""
    prefetch = getattr(request.parser_context["view"], "prefetch", None)
    return None if prefetch is None else prefetch(request)


def _accepts_basic(request: Request) -> bool:
    return getattr(request.parser_context["view"], "accepts_basic", False)


def _password(credentials: str) -> str:
    try:
        pair = base64.b64decode(credentials.strip(), validate=True).decode()
    except ValueError:  # not base64, ASCII or UTF-8
        return ""
    return pair.partition(":")[2]
