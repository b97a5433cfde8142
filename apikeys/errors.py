"""What a caller is told about their credentials.

Each error carries what the project's one error form needs: ``default_code`` is the reason, and
``auth_header`` is the challenge (RFC 9110 §11.6.1, RFC 6750 §3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apikeys.scopes import Scope
    from apikeys.tokens import TokenKind


class CredentialsMissing(NotAuthenticated):
    """No credentials were sent."""

    default_code = "CREDENTIALS_MISSING"
    default_detail = "Send a token: 'Authorization: Bearer <token>'."


class CredentialsInvalid(AuthenticationFailed):
    """The token is malformed, unknown or revoked; which of them is not told."""

    default_code = "CREDENTIALS_INVALID"
    default_detail = "The token is not valid."


class TokenExpired(AuthenticationFailed):
    """The token was right and has expired."""

    default_code = "TOKEN_EXPIRED"
    default_detail = "The token has expired."


class ScopeInsufficient(PermissionDenied):
    """The token is right, but may not do this."""

    default_code = "SCOPE_INSUFFICIENT"

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"This needs the scope {scope.value}, which the token does not have.")
        self.auth_header = f'Bearer error="insufficient_scope", scope="{scope.value}"'
        self.metadata = {"scope": scope.value}


class TokenKindUnsupported(PermissionDenied):
    """The token is right, but this endpoint takes other kinds."""

    default_code = "TOKEN_KIND_UNSUPPORTED"

    def __init__(self, accepted: Iterable[TokenKind]) -> None:
        titles = " or ".join(sorted(kind.title for kind in accepted))
        super().__init__(f"This endpoint accepts a {titles}.")
        self.metadata = {"accepted": ",".join(sorted(kind.name for kind in accepted))}
