from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from apikeys import actors

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from apikeys.grants import Caller

HEADER: Final = "Token-Expires-At"
_SOON: Final = dt.timedelta(days=7)


class ActingMiddleware:
    """Middleware that sets the logged-in person as the current actor."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with actors.acting(lambda: actors.Actor.of_person(request)):
            return self.get_response(request)


class TokenExpiryMiddleware:
    """Middleware that adds a header with the expiry of a token that expires within a week."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        caller: Caller | None = getattr(request, "auth", None)
        if caller is not None and caller.expires_at is not None:
            moment = caller.expires_at
            if moment - dt.datetime.now(dt.UTC) <= _SOON:
                response[HEADER] = moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return response
