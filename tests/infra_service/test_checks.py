"""The API is closed by default, proved at start-up."""

from typing import Any

import pytest
from django.urls import include, path
from django.views import View
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.view_checks import every_view_declares_its_access


class Open(APIView):
    def get(self, request: Any) -> Response: ...


class NoKinds(APIView):
    required_scopes = {"GET": Scope.STATE_READ}

    def get(self, request: Any) -> Response: ...


class HalfDeclared(APIView):
    token_kinds = ACCESS_TOKENS
    required_scopes = {"GET": Scope.STATE_READ}

    def get(self, request: Any) -> Response: ...
    def post(self, request: Any) -> Response: ...


class Things(ViewSet):
    token_kinds = ACCESS_TOKENS
    required_scopes = {"list": Scope.STATE_READ}

    def list(self, request: Any) -> Response: ...
    def close(self, request: Any) -> Response: ...


class Public(APIView):
    public = True


class PlainDjango(View): ...


class urlpatterns_of:  # noqa: N801 - stands for a module
    def __init__(self, *patterns: Any) -> None:
        self.urlpatterns = list(patterns)


@pytest.mark.parametrize(
    ("view", "missing"),
    [
        (Open.as_view(), ["token_kinds", "the scope of GET"]),
        (NoKinds.as_view(), ["token_kinds"]),
        (HalfDeclared.as_view(), ["the scope of POST"]),
        (Things.as_view({"get": "list", "post": "close"}), ["the scope of close"]),
        (PlainDjango.as_view(), ["token_kinds"]),
        (Public.as_view(), []),
        (Things.as_view({"get": "list"}), []),
    ],
)
def test_views_are_checked(settings: Any, view: Any, missing: list[str]) -> None:
    settings.ROOT_URLCONF = urlpatterns_of(path("a/", include([path("b", view)])))

    found = every_view_declares_its_access()

    assert [error.id for error in found] == ["infra_service.E001"] * len(missing)
    for error, what in zip(found, missing, strict=True):
        assert error.msg.startswith("a/b (")
        assert error.msg.endswith(f" does not declare {what}.")


def test_the_real_urls_are_closed() -> None:
    assert every_view_declares_its_access() == []
