"""Requests to the API within the process, for the caller of the outer request.

The method of a view runs unchanged: scope, binding, filters and pages are the same as over HTTP.
The outer request is already authenticated, counted for the rate limits and parsed.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from django.http import QueryDict
from django.urls import get_resolver, reverse

from apikeys.permissions import HasScope
from infra_service.lib.api.routes import routes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

    from apikeys.scopes import Scope


def send(
    outer: Request,
    route: str,
    path: dict[str, str],
    query: Mapping[str, str],
    body: Mapping[str, str] | None = None,
) -> Any:
    """Return the response of a named route to a GET, or with a ``body`` to a POST."""
    http: Any = copy.copy(outer._request)
    http.path = http.path_info = reverse(route, kwargs=path)
    http.method = "GET" if body is None else "POST"
    http.GET = QueryDict(mutable=True)
    http.GET.update(query)
    request: Any = copy.copy(outer)
    request._request, request._full_data = http, body
    found, name = view_of(route), method_of(route)
    view = found.cls(**found.initkwargs, permission_classes=[HasScope])
    view.request, view.kwargs, view.action, view.format_kwarg = request, path, name, None
    try:
        view.check_permissions(request)
        return getattr(view, name.lower())(request, **path)
    except Exception as error:  # noqa: BLE001 - as DRF's dispatch
        return view.handle_exception(error)


@functools.cache
def view_of(route: str) -> Any:
    """Return the view of a named route."""
    return next(r.callback for r in routes(get_resolver().url_patterns) if r.name == route)


def method_of(route: str) -> str:
    """Return the name under which the view of a route declares its scope."""
    actions = getattr(view_of(route), "actions", None) or {"get": "GET"}
    return str(actions.get("get") or actions["post"])


def scope_of(route: str) -> Scope:
    """Return the scope that the view of a route requires."""
    scope: Scope = view_of(route).cls.required_scopes[method_of(route)]
    return scope
