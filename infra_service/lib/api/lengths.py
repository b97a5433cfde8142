"""Limit request bodies to 1 MiB, before they are read.

Views that read large bodies set their own limit. Most views never read the body, but the server
would still have to receive it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.urls import Resolver404, resolve

from infra_service.lib.api.bodies import BodyTooLarge, LengthRequired
from infra_service.lib.api.handlers import refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse
    from rest_framework.exceptions import APIException


class BodyLengthMiddleware:
    """A middleware that rejects chunked bodies, and bodies that exceed the limit.

    It skips the methods in ``reads_bodies_of`` of a view, which apply the view's own limit.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        fault = _fault(request)
        if fault is not None and request.method not in _read_by_view(request):
            return refused(request, fault)
        return self.get_response(request)


def _fault(request: HttpRequest) -> APIException | None:
    if "HTTP_TRANSFER_ENCODING" in request.META:
        return LengthRequired()
    limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if int(request.META.get("CONTENT_LENGTH") or 0) > limit:
        return BodyTooLarge(limit)
    return None


def _read_by_view(request: HttpRequest) -> frozenset[str]:
    try:
        view = resolve(request.path_info).func
    except Resolver404:
        return frozenset()
    methods: frozenset[str] = getattr(getattr(view, "cls", None), "reads_bodies_of", frozenset())
    return methods
