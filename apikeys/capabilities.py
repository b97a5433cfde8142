"""Capabilities: encrypted URL parameters that authorize a request in place of a token.

Clients of pre-signed URLs send no credentials. A capability contains the digest of a token and the
claims of the view that issued it. Each use authenticates the token again, so revoking the token
also invalidates its capabilities.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication

from apikeys.callers import find_by_digest
from apikeys.errors import CredentialsInvalid, CredentialsMissing
from apikeys.tokens import TokenKind
from infra_service.lib import encryption

if TYPE_CHECKING:
    from rest_framework.request import Request

    from apikeys.grants import Caller

#: The query parameter. The access log omits query strings.
PARAMETER: Final = "capability"
_LIFETIME: Final = dt.timedelta(minutes=15)
#: The maximum number of characters of a capability. Longer parameters are invalid.
_LONGEST: Final = 2000


class Sealed(msgspec.Struct, array_like=True):
    """The content of a capability."""

    kind: str
    digest: bytes
    expires_at: dt.datetime
    claims: msgspec.Raw


def issue(caller: Caller, purpose: str, claims: msgspec.Struct) -> str:
    """Return a capability of the caller that expires after 15 minutes."""
    encoded = msgspec.Raw(msgspec.msgpack.encode(claims))
    sealed = Sealed(caller.kind.name, caller.digest, timezone.now() + _LIFETIME, encoded)
    return encryption.encrypt_to_text(purpose.encode(), msgspec.msgpack.encode(sealed))


class CapabilityAuthentication(BaseAuthentication):
    """Authentication by the capability in the query string.

    The view declares the purpose and the type of the claims (a ``msgspec.Struct``) in
    ``capability``. Its method ``accept_claims`` receives the claims, and returns a query
    (``Prefetch``) to run together with the query for the caller, or None.
    """

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Return the caller for which the capability was issued.

        Raises:
            CredentialsMissing: the parameter is missing.
            CredentialsInvalid: the capability is invalid, expired or for another purpose, or its
                token is not valid.
            TokenExpired, AddressNotAllowed: see ``callers.find_caller``.
        """
        view: Any = request.parser_context["view"]
        purpose, claims_type = view.capability
        sealed = opened(request, purpose)
        prefetch = view.accept_claims(msgspec.msgpack.decode(sealed.claims, type=claims_type))
        address = request.META.get("REMOTE_ADDR", "")
        caller = find_by_digest(TokenKind[sealed.kind], sealed.digest, prefetch, address)
        return caller, caller

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - DRF's signature
        """Return the challenge of a 401."""
        return 'Bearer realm="infra-service"'


def opened(request: Request, purpose: str) -> Sealed:
    """Return the content of the request's capability, without checking that its token is valid.

    Raises:
        CredentialsMissing: the parameter is missing.
        CredentialsInvalid: the capability is invalid, expired or for another purpose.
    """
    text = request.query_params.get(PARAMETER, "")
    if not text:
        raise CredentialsMissing
    plaintext = encryption.decrypt_text(purpose.encode(), text[:_LONGEST])
    if plaintext is None:
        raise CredentialsInvalid
    sealed = msgspec.msgpack.decode(plaintext, type=Sealed)
    if sealed.expires_at <= timezone.now():
        raise CredentialsInvalid
    return sealed
