"""DRF permissions: every view declares the scopes and token kinds that it accepts.

A view, or viewset, declares

- ``required_scopes``: the scope of each method (``{"GET": Scope.STATE_READ}``) or, in a viewset,
  of each action (``{"list": Scope.APIKEY_READ}``); None if any valid token suffices;
- ``token_kinds``: the kinds of token that the view accepts. With ``minted_only = True``, the view
  accepts only access tokens that were minted from an API key;

or ``public = True``. At startup, a system check (``infra_service/view_checks.py``) rejects
views without a declaration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework.permissions import BasePermission

from apikeys import metrics
from apikeys.authentication import caller_of
from apikeys.errors import CredentialsMissing, ScopeInsufficient, TokenKindUnsupported
from apikeys.metrics import Authentication
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    from rest_framework.request import Request

    from apikeys.scopes import Scope

ACCESS_TOKENS: Final = frozenset({TokenKind.PERSONAL, TokenKind.SERVICE})
API_KEYS: Final = frozenset({TokenKind.API_KEY})
ANY_TOKEN: Final = ACCESS_TOKENS | API_KEYS


class HasScope(BasePermission):
    """A permission that requires a token of an accepted kind with the scope.

    A missing token causes a 401. A token of another kind or without the scope causes a 403.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True, or raise the error with the missing permission."""
        if getattr(view, "public", False):
            return True
        if request.auth is None:
            metrics.count(Authentication.MISSING)
            raise CredentialsMissing
        caller = caller_of(request)
        demand_kind(request, view.token_kinds)
        if getattr(view, "minted_only", False) and caller.api_key_id is None:
            raise TokenKindUnsupported(caller.kind, view.token_kinds, minted_only=True)
        # After this check, the view responds with 405 to an unsupported method.
        scope = view.required_scopes.get(getattr(view, "action", None) or _method(request))
        if scope is not None:
            demand_scope(request, scope)
        return True


def demand_scope(request: Request, scope: Scope) -> None:
    """Refuse a caller without the scope, for requests that require more scopes than the view.

    Raises:
        ScopeInsufficient: the caller lacks the scope.
    """
    if scope not in caller_of(request).scopes:
        raise ScopeInsufficient(scope)


def demand_kind(request: Request, kinds: frozenset[TokenKind]) -> None:
    """Refuse a token of any other kind, for requests that accept fewer kinds than the view.

    Raises:
        TokenKindUnsupported: the kind of the token is not in ``kinds``.
    """
    sent = caller_of(request).kind
    if sent not in kinds:
        raise TokenKindUnsupported(sent, kinds)


def _method(request: Request) -> str:
    return "GET" if request.method == "HEAD" else str(request.method)
