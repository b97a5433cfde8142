"""The URLs of the peers: two ordinary lists of states with our permissions, and a backend."""

from __future__ import annotations

from typing import Any

from django.urls import include, path
from rest_framework import serializers
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.pagination import PageNumberPagination
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS, ANY_TOKEN
from apikeys.scopes import Scope
from infra_service.lib.api.viewsets import ListView
from states.models import State
from tools.bench.naive import NaiveBackend


class StateModelSerializer(serializers.ModelSerializer[State]):
    component_name = serializers.CharField(source="component.name")
    component_slug = serializers.CharField(source="component.slug")
    application_slug = serializers.CharField(source="application.slug", default=None)
    environment_name = serializers.CharField(source="environment.name")
    environment_slug = serializers.CharField(source="environment.slug")
    lock = serializers.SerializerMethodField()

    class Meta:
        model = State
        fields = [
            "id",
            "component_id",
            "component_name",
            "component_slug",
            "application_slug",
            "environment_id",
            "environment_name",
            "environment_slug",
            "serial",
            "md5",
            "lineage",
            "size_bytes",
            "lock",
            "created_at",
            "updated_at",
        ]

    def get_lock(self, state: State) -> dict[str, Any] | None:
        return state.lock_info


class States(GenericAPIView[State]):
    """The common base of both lists."""

    serializer_class = StateModelSerializer
    renderer_classes = [JSONRenderer]
    token_kinds = ACCESS_TOKENS
    required_scopes = {"GET": Scope.STATE_READ}

    def get_queryset(self) -> Any:
        seen = State.objects.visible().inside(caller_of(self.request).binding)
        return seen.select_related("component", "application", "environment").order_by("id")


class Keyset(States, ListView[State]):
    """A list with the same keyset, but with instances and a ModelSerializer."""

    resource_plural, page_key = "states", ("id",)

    def get(self, request: Request) -> Response:
        return self.list(request)


class Pages(PageNumberPagination):
    page_size = 100


class PageNumber(States, ListAPIView[State]):
    """A list with DRF's page numbers, which uses OFFSET and counts the rows for each request."""

    pagination_class = Pages


class Empty(APIView):
    """A view that does nothing, within the complete service."""

    public = True
    authentication_classes: Any = ()
    permission_classes: Any = ()

    def get(self, _request: Request) -> Response:
        return Response({"status": "ok"})


class Authenticated(Empty):
    public = False
    authentication_classes = APIView.authentication_classes
    permission_classes = APIView.permission_classes
    token_kinds = ANY_TOKEN
    required_scopes = {"GET": Scope.STATE_READ}


urlpatterns = [
    path("bench/empty", Empty.as_view()),
    path("bench/authenticated", Authenticated.as_view()),
    path("bench/state/<uuid:component_id>/env/<uuid:environment_id>", NaiveBackend.as_view()),
    path("bench/keyset", Keyset.as_view()),
    path("bench/page-number", PageNumber.as_view()),
    path("", include("infra_service.urls")),
]
