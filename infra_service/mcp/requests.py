"""Requests to the API within the process, for the caller of the outer request.

A view runs unchanged: its scopes, its binding, its filters and its pages decide as over HTTP. Only
the token is not looked up again, and the request does not count again for the rate limits.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from django.http import QueryDict
from django.urls import get_resolver, reverse

from apikeys.authentication import TokenAuthentication, caller_of
from apikeys.permissions import HasScope
from apikeys.scopes import Scope
from infra_service.lib.api.routes import routes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rest_framework.request import Request

    from apikeys.grants import Caller


class ApiRequest(NamedTuple):
    """A GET of a named route, or with a ``body`` a POST."""

    route: str
    path: Mapping[str, object]
    query: Mapping[str, str] = {}
    body: Mapping[str, str] | None = None

    def send(self, outer: Request, *, with_secrets: bool) -> Any:
        """Return the response. Without ``with_secrets``, the caller has no ``state:secrets``."""
        caller = caller_of(outer)
        if not with_secrets:
            scopes = caller.scopes - {Scope.STATE_SECRETS.value}
            caller = dataclasses.replace(caller, scopes=scopes)
        kwargs = {name: str(value) for name, value in self.path.items()}
        query = QueryDict(mutable=True)
        query.update({name: text for name, text in self.query.items() if text})
        inner: Any = copy.copy(outer._request)
        inner.path = inner.path_info = reverse(self.route, kwargs=kwargs)
        inner.method = "GET" if self.body is None else "POST"
        inner.GET, inner.caller_of_tool = query, caller
        inner._body = b"" if self.body is None else msgspec.json.encode(self.body)
        length, kind = str(len(inner._body)), "application/json"
        inner.META = {**inner.META, "CONTENT_LENGTH": length, "CONTENT_TYPE": kind}
        return _without_token(self.route)(inner, **kwargs)


class OuterAuthentication(TokenAuthentication):
    """The caller that the outer request authenticated."""

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Return the caller as DRF's user and auth."""
        caller: Caller = request._request.caller_of_tool  # type: ignore[attr-defined]
        return caller, caller


@functools.cache
def view_of(route: str) -> Any:
    """Return the view of a named route."""
    return next(r.callback for r in routes(get_resolver().url_patterns) if r.name == route)


@functools.cache
def scope_of(route: str) -> Scope:
    """Return the scope that the view of a route requires."""
    view = view_of(route)
    actions = getattr(view, "actions", None) or {"get": "GET"}
    scope: Scope = view.cls.required_scopes[actions.get("get") or actions["post"]]
    return scope


@functools.cache
def _without_token(route: str) -> Callable[..., Any]:
    view = view_of(route)
    replaced = {
        "authentication_classes": [OuterAuthentication],
        "permission_classes": [HasScope],
    }
    actions = getattr(view, "actions", None)
    found: Callable[..., Any] = view.cls.as_view(
        *([actions] if actions else []), **{**view.initkwargs, **replaced}
    )
    return found
