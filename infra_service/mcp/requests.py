"""Requests to the views of the API within a process, with the caller of the outer request.

A view runs unchanged: its scopes, its binding, its filters and its pages decide as over HTTP.
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

    from django.http import HttpRequest
    from rest_framework.request import Request

    from apikeys.grants import Caller


class ApiRequest(NamedTuple):
    """A GET of a named route, or with a ``body`` a POST."""

    route: str
    kwargs: Mapping[str, Any] = {}
    query: Mapping[str, str] = {}
    body: Mapping[str, Any] | None = None

    def send(self, outer: Request, *, with_secrets: bool) -> Any:
        """Return the response of the view, whose rate limits and token were checked before.

        Without ``with_secrets``, the view treats the caller as one without ``state:secrets``.
        """
        caller = caller_of(outer)
        if not with_secrets:
            scopes = caller.scopes - {Scope.STATE_SECRETS.value}
            caller = dataclasses.replace(caller, scopes=scopes)
        kwargs = {name: str(value) for name, value in self.kwargs.items()}
        path = reverse(self.route, kwargs=kwargs)
        return _view(self.route)(self._inner(outer._request, path, caller), **kwargs)

    def _inner(self, outer: HttpRequest, path: str, caller: Caller) -> HttpRequest:
        query = QueryDict(mutable=True)
        query.update({name: text for name, text in self.query.items() if text})
        inner: Any = copy.copy(outer)
        inner.path = inner.path_info = path
        inner.GET = query
        inner.method = "GET" if self.body is None else "POST"
        inner._body = b"" if self.body is None else msgspec.json.encode(self.body)
        inner.META = {
            **outer.META,
            "REQUEST_METHOD": inner.method,
            "QUERY_STRING": query.urlencode(),
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(inner._body)),
        }
        inner.caller_of_tool = caller
        return inner  # type: ignore[no-any-return]


class OuterAuthentication(TokenAuthentication):
    """The caller that the outer request authenticated."""

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Return the caller as DRF's user and auth."""
        caller: Caller = request._request.caller_of_tool  # type: ignore[attr-defined]
        return caller, caller


def scope_of(route: str) -> Scope | None:
    """Return the scope that the view of a route requires for reading."""
    view = _declared()[route]
    scopes: dict[str, Scope | None] = view.cls.required_scopes
    actions = getattr(view, "actions", None) or {"get": "GET"}
    return scopes[actions.get("get") or actions["post"]]


def filter_fields(route: str) -> list[str]:
    """Return the names of the fields that the list of a route can be filtered by."""
    return list(_declared()[route].cls.filterset_class.base_filters)


@functools.cache
def _view(route: str) -> Callable[..., Any]:
    """Return the view of a route, which counts no request and looks up no token again."""
    view = _declared()[route]
    actions = getattr(view, "actions", None)
    replaced: Any = view.cls.as_view(
        *filter(None, [actions]),
        **{
            **view.initkwargs,
            "authentication_classes": [OuterAuthentication],
            "permission_classes": [HasScope],
        },
    )
    return replaced  # type: ignore[no-any-return]


@functools.cache
def _declared() -> dict[str, Any]:
    everywhere = routes(get_resolver().url_patterns)
    return {str(route.name): route.callback for route in everywhere}
