"""The one DRF permission class: every view declares the scopes and the token kinds that it takes.

A view, or viewset, says

- ``required_scopes``: the scope of each method (``{"GET": Scope.STATE_READ}``) or, in a viewset,
  of each action (``{"list": Scope.APIKEY_READ}``); None where any valid token will do;
- ``token_kinds``: the kinds of token it accepts;

or ``public = True``. One that says nothing is refused at start-up by a system check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rest_framework.permissions import BasePermission

from apikeys.errors import CredentialsMissing, ScopeInsufficient, TokenKindUnsupported
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

ACCESS_TOKENS: Final = frozenset({TokenKind.PERSONAL, TokenKind.SERVICE})


class HasScope(BasePermission):
    """Refuses a request without a token (401), of the wrong kind, or without the scope (403)."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True, or raise the error that tells the caller what is missing."""
        if getattr(view, "public", False):
            return True
        if request.auth is None:
            raise CredentialsMissing
        if request.auth.kind not in view.token_kinds:  # type: ignore[attr-defined]
            raise TokenKindUnsupported(view.token_kinds)  # type: ignore[attr-defined]
        key = getattr(view, "action", None) or str(request.method).replace("HEAD", "GET")
        # A method that the view does not have is answered with 405 after this.
        scope = view.required_scopes.get(key)  # type: ignore[attr-defined]
        if scope is not None and scope not in request.auth.scopes:
            raise ScopeInsufficient(scope)
        return True
