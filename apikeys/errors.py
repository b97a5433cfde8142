"""Errors of credentials, their parameters, keys and tokens.

Each error has the attributes of the project's error form: ``default_code`` is the reason,
``meaning`` its description in the reference, and ``auth_header`` is the challenge (RFC 9110
§11.6.1, RFC 6750 §3).
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
)

from apikeys.tokens import TokenKind
from infra_service.lib.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from apikeys.scopes import Scope


class CredentialsMissing(NotAuthenticated):
    meaning = "No credentials were sent."
    default_code = "CREDENTIALS_MISSING"
    default_detail = "Send a token: 'Authorization: Bearer <token>'."


class _TokenRefused(AuthenticationFailed):
    """Refused credentials; ``token_id`` is set if they once worked, for the rate limit."""

    def __init__(self, token_id: str | None = None) -> None:
        super().__init__()
        self.token_id = token_id


class CredentialsInvalid(_TokenRefused):
    meaning = "The token is malformed, unknown or revoked; which of them is not told."
    default_code = "CREDENTIALS_INVALID"
    default_detail = (
        "The token is not valid: mistyped, revoked or unknown here. Mint another from an API key, "
        "or ask an operator."
    )


class CredentialsMalformed(CredentialsInvalid):
    """A header without a token; the other parts of the header are ignored."""

    default_detail = (
        "Send the token as 'Authorization: Bearer <token>', or on the state backend alone "
        "(/api/v1/state/…) as the password of HTTP Basic."
    )


class TokenExpired(_TokenRefused):
    meaning = "The token was right and has expired."
    default_code = "TOKEN_EXPIRED"
    default_detail = "The token has expired. Mint another from an API key, or ask an operator."


class AddressNotAllowed(PermissionDenied):
    """A credential used outside its networks; counts as a failed authentication."""

    meaning = "The token is right, but may not be used from the client's address."
    default_code = "ADDRESS_NOT_ALLOWED"
    default_detail = "The token may not be used from this address."
    is_of_working_token = True

    def __init__(self, token_id: str) -> None:
        super().__init__()
        self.token_id = token_id


class ScopeInsufficient(PermissionDenied):
    meaning = "The token is right, but may not do this."
    default_code = "SCOPE_INSUFFICIENT"
    advice = "Mint one that has it from an API key that does, or ask an operator."

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"This needs the scope {scope.value}, which the token does not have.")
        self.auth_header = f'Bearer error="insufficient_scope", scope="{scope.value}"'
        self.metadata = {"scope": scope.value}


class TokenKindUnsupported(PermissionDenied):
    meaning = "The token is right, but this endpoint takes other kinds."
    default_code = "TOKEN_KIND_UNSUPPORTED"

    def __init__(
        self, sent: TokenKind, accepted: Iterable[TokenKind], *, minted_only: bool = False
    ) -> None:
        if minted_only:
            accepts = "an API key or an access token minted from one, and yours was issued"
            advice = "Send an API key (isk_…), or a token that POST /v1/access-tokens mints from it"
        else:
            titles = " or ".join(sorted(_with_article(kind) for kind in accepted))
            accepts = f"{titles}, and yours is {_with_article(sent)}"
            is_key = sent is TokenKind.API_KEY
            advice = "Mint one from it: POST /v1/access-tokens" if is_key else "Send its key"
        super().__init__(f"This endpoint accepts {accepts}. {advice}.")
        self.metadata = {"accepted": ",".join(sorted(kind.name for kind in accepted))}


def _with_article(kind: TokenKind) -> str:
    return f"{'an' if kind is TokenKind.API_KEY else 'a'} {kind.title}"


class GrantExceeded(PermissionDenied):
    """A grant beyond the actor's; ``latest`` is the latest allowed expiry, if exceeded."""

    meaning = (
        "Nobody hands on more than they hold: ``scopes`` are what is missing, or the binding or "
        "the networks are too wide."
    )
    default_code = "GRANT_EXCEEDED"

    def __init__(
        self,
        holder: str,
        *,
        scopes: Collection[str] = (),
        latest: dt.datetime | None = None,
        networks: Collection[str] = (),
    ) -> None:
        if scopes:
            names = " ".join(scopes)
            super().__init__(f"{holder} cannot hand on what it does not hold: {names}.")
            self.auth_header = f'Bearer error="insufficient_scope", scope="{names}"'
            self.metadata = {"scopes": ",".join(scopes)}
        elif latest is not None:
            end = latest.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            super().__init__(f"{holder} ends at {end}, and what it hands on must end by then.")
            self.metadata = {"expires_at": end}
        elif networks:
            names = ", ".join(networks)
            super().__init__(f"{holder} is limited to the networks {names}; stay within them.")
            self.metadata = {"allowed_networks": ",".join(networks)}
        else:
            super().__init__(f"{holder} is bound, and what it hands on must be within that.")


class SecretRetired(PermissionDenied):
    meaning = (
        "The key was rotated; its previous secret and tokens from before manage no credentials."
    )
    default_code = "SECRET_RETIRED"
    default_detail = (
        "The key was rotated. Until they end its previous secret can read and mint tokens, and "
        "tokens from before can do what they are for; neither creates, changes, rotates or "
        "revokes keys and tokens. Use the key's new secret, or a token minted with it."
    )


class CallerChanged(APIException):
    meaning = (
        "Rights of the caller were taken away between their check and the deed; nothing was done."
    )
    status_code = 503
    default_code = "CALLER_CHANGED"
    default_detail = "Your token was changed while the request came; send it again."
    wait = 1


class BindingInsufficient(PermissionDenied):
    meaning = "The token is bound, and what is asked reaches beyond that."
    default_code = "BINDING_INSUFFICIENT"
    default_detail = "Your token is bound, and this reaches beyond what it is bound to."


class ApiKeyNotFound(NotFound):
    meaning = "No such key, another's, or outside the caller's binding."
    default_code = "API_KEY_NOT_FOUND"
    default_detail = "You have no such API key."
    advice = "GET /v1/api-keys lists those that you have, with their ids."


class AccessTokenNotFound(NotFound):
    meaning = "No such token, another's, or outside the caller's binding."
    default_code = "ACCESS_TOKEN_NOT_FOUND"
    default_detail = "You have no such access token."
    advice = "GET /v1/access-tokens lists those that you have, with their ids."


class AuditTrailNotFound(NotFound):
    meaning = "A bound token does not reach the trail, which tells of everything."
    default_code = "AUDIT_TRAIL_NOT_FOUND"
    default_detail = (
        "The audit trail is outside of what your token is bound to; send one that is not bound."
    )


class ApiKeyRevoked(APIException):
    meaning = "Revocation is final."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "API_KEY_REVOKED"
    default_detail = "The API key is revoked, which is final."


class ApiKeyExpired(APIException):
    meaning = "An expired key can only be extended, or revoked."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "API_KEY_EXPIRED"
    default_detail = "The API key has expired; extend it first, by changing expires_at."


class TooManyApiKeys(APIException):
    """The limit of active keys, because a revocation covers all descendants in one transaction."""

    meaning = "The owner has as many keys that work as there may be."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "TOO_MANY_API_KEYS"

    def __init__(self, most: int) -> None:
        super().__init__(f"You have {most} API keys that work; revoke those that you do not need.")
        self.metadata = {"limit": str(most)}


class ConcurrentChange(APIException):
    meaning = "Somebody else changed the same thing at the same moment, and was first."
    status_code = 409
    default_code = "CONCURRENT_CHANGE"
    default_detail = "The API key was changed at the same moment; look at it and try again."


class ExpiryPast(InvalidParameter):
    """The requested expiry is before the creation of the key or token."""

    def __init__(self) -> None:
        super().__init__("expires_at", "Not in the future.", "PAST")


class GracePeriodOutOfRange(InvalidParameter):
    """The requested grace period of the old secret exceeds the maximum."""

    def __init__(self, maximum: dt.timedelta) -> None:
        most = int(maximum.total_seconds())
        super().__init__("grace_period", f"Not between 0 and {most} seconds.", "RANGE")


class LifetimeExceeded(APIException):
    meaning = "A minted token would live longer than it may."
    status_code = 400
    default_code = "INVALID_FIELDS"

    def __init__(self, field: str, latest: dt.datetime) -> None:
        description = (
            f"A minted token ends with its key, and within 12 hours: at {latest} or before."
        )
        super().__init__(f"{field}: {description}")
        self.field_violations = [
            {"field": field, "description": description, "reason": "LIFETIME_EXCEEDED"}
        ]
