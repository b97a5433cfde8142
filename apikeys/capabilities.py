"""Capabilities: encrypted URL parameters that let a client act for a token without sending it.

Clients of pre-signed URLs send no credentials. A capability contains the digest of the token and
the claims of the view that issued it, so the token is authenticated again when it is used: a
revoked token ends its capabilities.
"""

from __future__ import annotations

import base64
import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication

from apikeys.callers import find_by_digest
from apikeys.errors import CredentialsInvalid, CredentialsMissing
from apikeys.tokens import TokenKind
from infra_service.lib import encryption

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

    from apikeys.grants import Caller
    from infra_service.lib.database.compiled import Prefetch

#: The query parameter; the access log omits queries.
PARAMETER: Final = "capability"
_LIFETIME: Final = dt.timedelta(minutes=15)
#: Characters; a longer parameter is not decrypted.
_LONGEST: Final = 2000


class _Sealed(msgspec.Struct, array_like=True):
    kind: str
    digest: bytes
    expires_at: dt.datetime
    claims: msgspec.Raw


def issue(caller: Caller, purpose: str, claims: msgspec.Struct) -> str:
    """Return a capability of the caller that expires after 15 minutes."""
    encoded = msgspec.Raw(msgspec.msgpack.encode(claims))
    sealed = _Sealed(caller.kind.name, caller.digest, timezone.now() + _LIFETIME, encoded)
    encrypted = encryption.encrypt(purpose.encode(), msgspec.msgpack.encode(sealed))
    return f"{encrypted.key_name}.{base64.urlsafe_b64encode(encrypted.payload).decode()}"


class CapabilityAuthentication(BaseAuthentication):
    """Authentication by the capability in the query.

    The view declares ``capability``, the purpose and the type of the claims, and gets them in
    ``accept_claims``, which returns the query to run with the caller's.
    """

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Return the caller that the capability was issued to.

        Raises:
            CredentialsMissing: the parameter is missing.
            CredentialsInvalid: the capability is invalid, expired or for another purpose, or its
                token is not valid.
            TokenExpired, AddressNotAllowed: see ``callers.find_caller``.
        """
        view: CapabilityView = request.parser_context["view"]
        text = request.query_params.get(PARAMETER, "")
        if not text:
            raise CredentialsMissing
        purpose, claims_type = view.capability
        sealed = _opened(text, purpose)
        if sealed is None or sealed.expires_at <= timezone.now():
            raise CredentialsInvalid
        prefetch = view.accept_claims(msgspec.msgpack.decode(sealed.claims, type=claims_type))
        address = request.META.get("REMOTE_ADDR", "")
        caller = find_by_digest(TokenKind[sealed.kind], sealed.digest, prefetch, address)
        return caller, caller

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - DRF's signature
        """Return the challenge of a 401."""
        return 'Bearer realm="infra-service"'


class CapabilityView:
    """What a view with ``CapabilityAuthentication`` declares."""

    capability: ClassVar[tuple[str, type[msgspec.Struct]]]
    accept_claims: Callable[[Any], Prefetch[Any] | None]


def _opened(text: str, purpose: str) -> _Sealed | None:
    """Return the content of a capability; None if it is invalid."""
    key_name, _, payload = text[:_LONGEST].partition(".")
    try:
        encrypted = encryption.Encrypted(base64.urlsafe_b64decode(payload), key_name)
        plaintext = encryption.decrypt(purpose.encode(), encrypted)
    except (ValueError, encryption.KeyMissingError, encryption.DamagedError):
        return None
    return msgspec.msgpack.decode(plaintext, type=_Sealed)
