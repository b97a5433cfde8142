"""Errors of credentials, their parameters, keys and tokens.

Each error has the attributes of the project's error format: ``default_code`` is the reason,
``meaning`` is the description in the reference, and ``auth_header`` is the challenge (RFC 9110
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
    default_detail = "The request has no token. Send 'Authorization: Bearer <token>'."


class _TokenRefused(AuthenticationFailed):
    """Refused credentials. ``token_id``, for the rate limit, is set if the token was once valid."""

    def __init__(self, token_id: str | None = None) -> None:
        super().__init__()
        self.token_id = token_id


class CredentialsInvalid(_TokenRefused):
    meaning = (
        "The token is malformed, unknown or revoked. The response does not disclose which of "
        "these applies."
    )
    default_code = "CREDENTIALS_INVALID"
    default_detail = (
        "The token is mistyped, revoked or unknown. Mint a new token from an API key, or "
        "ask an operator."
    )


class CredentialsMalformed(CredentialsInvalid):
    """An Authorization header without a token, or with an unsupported scheme."""

    default_detail = (
        "Send the token as 'Authorization: Bearer <token>', or, for the state backend only "
        "(/api/v1/state/…), as the password of HTTP Basic."
    )


class TokenExpired(_TokenRefused):
    meaning = "The token has expired."
    default_code = "TOKEN_EXPIRED"
    default_detail = "The token has expired. Use a new token or API key, or ask an operator."


class AddressNotAllowed(PermissionDenied):
    """The use of a credential outside its networks, which counts as a failed authentication."""

    meaning = "The token is valid, but cannot be used from the client's address."
    default_code = "ADDRESS_NOT_ALLOWED"
    default_detail = (
        "The token cannot be used from this address. Send the request from an allowed network, or "
        "use a token without this restriction."
    )
    is_of_working_token = True

    def __init__(self, token_id: str) -> None:
        super().__init__()
        self.token_id = token_id


class ScopeInsufficient(PermissionDenied):
    meaning = "The token is valid but lacks the required scope."
    default_code = "SCOPE_INSUFFICIENT"
    advice = "Mint a token with this scope from an API key that has it, or ask an operator."

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"This request requires the scope {scope.value}, which your token lacks.")
        self.auth_header = f'Bearer error="insufficient_scope", scope="{scope.value}"'
        self.metadata = {"scope": scope.value}


class TokenKindUnsupported(PermissionDenied):
    meaning = "The token is valid, but this endpoint accepts only other types of tokens."
    default_code = "TOKEN_KIND_UNSUPPORTED"

    def __init__(
        self, sent: TokenKind, accepted: Iterable[TokenKind], *, minted_only: bool = False
    ) -> None:
        if minted_only:
            accepted = [TokenKind.API_KEY]
            accepts = (
                "an API key or a token minted from it, but your token was issued without an API key"
            )
            advice = "Send an API key (isk_…), or a token that POST /v1/access-tokens mints from it"
        else:
            titles = " or ".join(sorted(_with_article(kind) for kind in accepted))
            accepts = f"{titles}, but you sent {_with_article(sent)}"
            is_key = sent is TokenKind.API_KEY
            mint = "Mint a token from it: POST /v1/access-tokens"
            advice = mint if is_key else "Send an API key (isk_…)"
        super().__init__(f"This endpoint accepts {accepts}. {advice}.")
        self.metadata = {"accepted": ",".join(sorted(kind.name for kind in accepted))}


def _with_article(kind: TokenKind) -> str:
    return f"{'an' if kind is TokenKind.API_KEY else 'a'} {kind.title}"


class GrantExceeded(PermissionDenied):
    """A grant that exceeds the actor's grant.

    ``latest`` is the latest allowed expiry, if the requested expiry exceeds it.
    """

    meaning = (
        "A caller cannot grant more than its own permissions. The requested ``scopes``, binding, "
        "networks or expiry exceeds the caller's own."
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
            super().__init__(f"{holder} cannot grant scopes that it lacks: {names}.")
            self.auth_header = f'Bearer error="insufficient_scope", scope="{names}"'
            self.metadata = {"scopes": ",".join(scopes)}
        elif latest is not None:
            end = latest.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            super().__init__(f"{holder} expires at {end}. Choose the same or an earlier expiry.")
            self.metadata = {"expires_at": end}
        elif networks:
            names = ", ".join(networks)
            super().__init__(
                f"{holder} is limited to the networks {names}. Choose networks within them."
            )
            self.metadata = {"allowed_networks": ",".join(networks)}
        else:
            super().__init__(f"{holder} has a binding. Choose a binding within it.")


class SecretRetired(PermissionDenied):
    meaning = (
        "The key was rotated. The key's previous secret and earlier tokens cannot manage "
        "credentials."
    )
    default_code = "SECRET_RETIRED"
    default_detail = (
        "The key was rotated. Its previous secret and earlier tokens cannot create, change, rotate "
        "or revoke keys and tokens. Until it expires, the previous secret can still read and mint "
        "tokens, and each earlier token keeps its other permissions. Use the key's new secret, or "
        "a token minted with it."
    )


class CallerChanged(APIException):
    meaning = "The caller lost permissions while the request was processed. Nothing was changed."
    status_code = 503
    default_code = "CALLER_CHANGED"
    default_detail = "Your permissions changed during the request. Send the request again."
    wait = 1


class BindingInsufficient(PermissionDenied):
    meaning = "The request exceeds the binding of the token."
    default_code = "BINDING_INSUFFICIENT"
    default_detail = (
        "The request exceeds the binding of your token. Use a token with a binding that "
        "includes the request."
    )


class ApiKeyNotFound(NotFound):
    meaning = "The key does not exist, belongs to another user, or is outside the caller's binding."
    default_code = "API_KEY_NOT_FOUND"
    default_detail = "The API key does not exist, or belongs to another user."
    advice = "GET /v1/api-keys lists your API keys and their ids."


class AccessTokenNotFound(NotFound):
    meaning = (
        "The token does not exist, belongs to another user, or is outside the caller's binding."
    )
    default_code = "ACCESS_TOKEN_NOT_FOUND"
    default_detail = "The access token does not exist, or belongs to another user."
    advice = "GET /v1/access-tokens lists your access tokens and their ids."


class AuditLogNotFound(NotFound):
    meaning = (
        "A token with a binding cannot read the audit log, which covers the whole installation."
    )
    default_code = "AUDIT_TRAIL_NOT_FOUND"
    default_detail = (
        "The audit log is outside the binding of your token. Send a token without a binding."
    )


class ApiKeyRevoked(APIException):
    meaning = "A revoked key cannot be changed."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "API_KEY_REVOKED"
    default_detail = "The API key has been revoked and cannot be restored. Create a new key."


class ApiKeyExpired(APIException):
    meaning = "An expired key can only be extended or revoked."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "API_KEY_EXPIRED"
    default_detail = "The API key has expired. Extend the key first: change expires_at."


class TooManyApiKeys(APIException):
    """An owner at the limit of active keys, which bounds the size of a revocation."""

    meaning = "The owner has reached the maximum number of active keys."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "TOO_MANY_API_KEYS"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"The owner has {most} active API keys, which is the maximum. Revoke keys that are not "
            "needed."
        )
        self.metadata = {"limit": str(most)}


class ConcurrentChange(APIException):
    meaning = "A concurrent request changed the same object first."
    status_code = 409
    default_code = "CONCURRENT_CHANGE"
    default_detail = "A concurrent request changed the API key. Fetch the key and try again."


class ExpiryPast(InvalidParameter):
    def __init__(self) -> None:
        super().__init__("expires_at", "Choose a time in the future.", "PAST")


class GracePeriodOutOfRange(InvalidParameter):
    """A requested grace period of the old secret that exceeds the maximum."""

    def __init__(self, maximum: dt.timedelta) -> None:
        most = int(maximum.total_seconds())
        super().__init__("grace_period", f"Choose 0 to {most} seconds.", "RANGE")


class LifetimeExceeded(InvalidParameter):
    """A requested lifetime of a minted token that exceeds the maximum."""

    def __init__(self, field: str, latest: dt.datetime) -> None:
        super().__init__(
            field,
            "A minted token expires within 12 hours, and no later than its key. Choose an "
            f"expiry of {latest} or earlier.",
            "LIFETIME_EXCEEDED",
        )
