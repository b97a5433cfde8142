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

from apikeys.authentication import caller_of
from apikeys.errors import CredentialsMissing, ScopeInsufficient, TokenKindUnsupported
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.views import APIView

    from apikeys.scopes import Scope

ACCESS_TOKENS: Final = frozenset({TokenKind.PERSONAL, TokenKind.SERVICE})


class HasScope(BasePermission):
    """Refuses a request without a token (401), of the wrong kind, or without the scope (403)."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True, or raise the error that tells the caller what is missing."""
        if getattr(view, "public", False):
            return True
        if request.auth is None:
            raise CredentialsMissing
        caller = caller_of(request)
        token_kinds: frozenset[TokenKind] = getattr(view, "token_kinds")  # noqa: B009 - see above
        if caller.kind not in token_kinds:
            raise TokenKindUnsupported(token_kinds)
        scopes: Mapping[str, Scope | None] = getattr(view, "required_scopes")  # noqa: B009 - see above
        # A method that the view does not have is answered with 405 after this.
        scope = scopes.get(getattr(view, "action", None) or _method(request))
        if scope is not None:
            demand_scope(request, scope)
        return True


def demand_scope(request: Request, scope: Scope) -> None:
    """Refuse a caller without the scope, where what is asked needs more than the view does.

    Raises:
        ScopeInsufficient: says which scope is missing.
    """
    if scope not in caller_of(request).scopes:
        raise ScopeInsufficient(scope)


def _method(request: Request) -> str:
    return "GET" if request.method == "HEAD" else str(request.method)
